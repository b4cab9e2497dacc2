// The square of a legend.

import { ofElement, type Shade } from "../colours";

export const Mark = ({ shade }: { shade: Shade }) => <span class={`mark ${shade.striped ? "striped" : ""}`} style={{ backgroundColor: ofElement(shade) }} />;
