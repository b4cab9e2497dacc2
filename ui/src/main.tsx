// The program of a page: reads the data that the page holds and puts the views in the place of the plain summary.

import { render } from "preact";
import { sourceOf } from "./data/source";
import { App, Model } from "./views/app";
import "./style.css";

async function start(): Promise<void> {
  const place = document.getElementById("page")!;
  const data = document.getElementById("data")!;
  try {
    const model = new Model(await sourceOf(data));
    document.title = `${model.source.page.recording.command.join(" ")} - clrscope`;
    data.remove();
    place.replaceChildren();
    place.className = "app";
    render(<App model={model} />, place);
  } catch (error) {
    const note = document.createElement("p");
    note.className = "warning";
    note.textContent = `This browser can't show the whole report (${error}).`;
    place.prepend(note);
  }
}

void start();
