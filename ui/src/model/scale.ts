// Round numbers on axes: 1, 2 and 5 with noughts.

/** The smallest round step that a length has at most so many of. */
export function roundStep(length: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(length / most));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => length / one <= most) ?? length;
}

/** The largest round number that is no larger than a number of at least 1. */
export function roundBelow(number: number): number {
  // Of 1000 the logarithm can be a little less than 3.
  const power = 10 ** Math.floor(Math.log10(number) + 1e-12);
  return [5, 2, 1].map((one) => one * power).find((one) => one <= number) ?? power;
}

/** The round number that follows a round one. */
export function roundAfter(round: number): number {
  const power = 10 ** Math.floor(Math.log10(round) + 1e-12);
  return (Math.round(round / power) === 2 ? 5 : Math.round(round / power) * 2) * power;
}
