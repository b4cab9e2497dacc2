// The program of a page: reads the data that the page holds and puts the views in the place of the plain summary.

import { render } from "preact";
import { unpack } from "./data/document";
import { App, Model } from "./views/app";
import "./style.css";

async function start(): Promise<void> {
  const place = document.getElementById("page")!;
  const data = document.getElementById("data")!;
  try {
    const model = new Model(await unpack(data.textContent ?? ""));
    data.remove();
    place.replaceChildren();
    place.className = "app";
    render(<App model={model} />, place);
  } catch (error) {
    const note = document.createElement("p");
    note.className = "warning";
    note.textContent = `This browser can't show the whole report (${error}); the summary below needs no script.`;
    place.prepend(note);
  }
}

void start();
