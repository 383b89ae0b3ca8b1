// The browser of a person who logs in, for OAuth clients: follows the redirects of an authorization server, and keeps its
// cookies. Also records the HTTP exchanges of an SDK.

/** The most redirects of one authorization. A login and a consent take six. */
const MOST_REDIRECTS = 12;

/**
 * Follows an authorization URL as the person `account`, until the redirect to the client. Returns the parameters of that
 * redirect, and those of the authorization request.
 */
export async function authorize(start, account, redirect) {
  const parameters = new URL(start).searchParams;
  let url = new URL(start);
  url.searchParams.set("login_hint", account);
  const cookies = new Map();
  for (let count = 0; count < MOST_REDIRECTS; count += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: cookie ? { cookie } : {} });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(";")[0].split("=");
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`no redirect, but ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirect)) return { answer: url.searchParams, seen: seen(parameters, url.searchParams) };
  }
  throw new Error(`more than ${MOST_REDIRECTS} redirects`);
}

/** The facts of an authorization that tests compare. */
function seen(parameters, answer) {
  const names = ["client_id", "response_type", "code_challenge_method", "redirect_uri", "resource", "scope"];
  const asked = Object.fromEntries(names.map((name) => [name, parameters.get(name)]));
  return { ...asked, has_challenge: parameters.has("code_challenge"), iss: answer.get("iss"), error: answer.get("error") };
}

/** A `fetch` that appends each exchange to `exchanges`: method, URL without query, status and challenge. */
export function recording(exchanges) {
  return async (input, options) => {
    const response = await fetch(input, options);
    const url = new URL(input instanceof Request ? input.url : input);
    const entry = { method: options?.method ?? "GET", url: url.origin + url.pathname, status: response.status };
    const challenge = response.headers.get("www-authenticate");
    exchanges.push(challenge === null ? entry : { ...entry, challenge });
    return response;
  };
}
