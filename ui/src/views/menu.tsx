// The menu of a frame or function: what can be done with it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Item {
  label: string;
  key?: string;
  act(): void;
}

export interface MenuAt {
  x: number;
  y: number;
  title: string;
  items: Item[];
}

export function Menu({ menu, onClose }: { menu: MenuAt; onClose(): void }) {
  const element = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ x: menu.x, y: menu.y });
  const before = useRef(document.activeElement as HTMLElement | null);
  const close = () => {
    onClose();
    before.current?.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    const { width, height } = element.current!.getBoundingClientRect();
    setPlace({ x: Math.max(0, Math.min(menu.x, innerWidth - width - 4)), y: Math.max(0, Math.min(menu.y, innerHeight - height - 4)) });
    element.current!.querySelector("button")?.focus();
  }, [menu]);
  useEffect(() => {
    const away = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) onClose();
    };
    addEventListener("pointerdown", away);
    addEventListener("resize", onClose);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("resize", onClose);
    };
  }, [onClose]);
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...element.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key === "ArrowDown") buttons[(at + 1) % buttons.length].focus();
    else if (event.key === "ArrowUp") buttons[(at + buttons.length - 1) % buttons.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" role="menu" aria-label={menu.title} ref={element} style={{ left: `${place.x}px`, top: `${place.y}px` }} onKeyDown={onKeyDown}>
      <p role="presentation">{menu.title}</p>
      {menu.items.map((item) => (
        <button
          type="button"
          role="menuitem"
          key={item.label}
          onClick={() => {
            close();
            item.act();
          }}
        >
          <span>{item.label}</span>
          {item.key && <kbd>{item.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
