// The square of a legend.

import type { Shade } from "../colours";

export const Mark = ({ shade }: { shade: Shade }) => <span class={`mark ${shade.striped ? "striped" : ""}`} style={{ backgroundColor: shade.colour }} />;
