// @ts-check
// What every script of the page does when it asks the server.

/** The token of this page's forms. */
export function csrf() {
  return document.querySelector('meta[name="csrf"]')?.getAttribute("content") ?? "";
}

/**
 * The JSON of an answer; an error with the server's sentence if it refused.
 * @param {Response} answer
 * @returns {Promise<any>}
 */
export async function told(answer) {
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error.message);
  return data;
}
