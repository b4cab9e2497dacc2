// Names of functions and types, as short as there is room for: `Shop.Cart+Line::Total`, `System.Collections.Generic.List<Shop.Order>[]`.

/** The namespace of a name with the dot behind it, `""` where it has none, and the rest. */
export function partsOf(name: string): [string, string] {
  // Neither generic arguments nor the method belong to the path of the type.
  const path = /^[\w.`+]*/.exec(name)![0].split("+")[0];
  const dot = path.lastIndexOf(".");
  // Numbers behind a dot are parts of native names.
  return dot > 0 && /^[A-Za-z_]/.test(path.slice(dot + 1)) ? [name.slice(0, dot + 1), name.slice(dot + 1)] : ["", name];
}

/** The name of a type, and of those that it is made of, without their namespaces: `Dictionary<int, Order>.Entry[]`. */
export const withoutNamespaces = (name: string): string => name.replace(/(^|[<,\s(])(?:\w+\.)+(?=\w)/g, "$1");

/** What is behind the last mark of a text that stands in no brackets: not in tuples, type arguments or parameters. */
function behindLast(text: string, mark: string): string {
  let depth = 0;
  for (let at = text.length - 1; at >= 0; at--) {
    if (")>]".includes(text[at])) depth++;
    else if ("(<[".includes(text[at])) depth = Math.max(0, depth - 1);
    else if (depth === 0 && text[at] === mark) return text.slice(at + 1);
  }
  return text;
}

/** Methods that say little without their type. */
const VAGUE = new Set(["MoveNext", "Invoke", ".ctor", ".cctor"]);

/** Ways to write the name of a function, longest first: whole, without namespace, without outer types, and what says most of it alone. */
export function shorterNames(name: string): string[] {
  // Part of the method that the code is: `(async lambda, Cart.cs:17)`.
  const marker = / \([^()]*\)$/.exec(name)?.[0] ?? "";
  const rest = partsOf(marker ? name.slice(0, -marker.length) : name)[1];
  const at = rest.lastIndexOf("::");
  if (at < 0) return [name, rest.split("/").pop()! + marker];
  const [type, method] = [rest.slice(0, at), rest.slice(at + 2)];
  const inner = behindLast(type, "+");
  // Methods that implement one of an interface by its name have that name: `System.IDisposable.Dispose`.
  const plain = method.startsWith(".") ? method : behindLast(method, ".");
  return [name, `${type}::${method}${marker}`, `${inner}::${plain}${marker}`, VAGUE.has(method) ? inner : plain + marker];
}
