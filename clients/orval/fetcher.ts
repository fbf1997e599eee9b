// Sends the requests of the generated client to the server at NODE_URL.

declare const process: { env: Record<string, string | undefined> };

export async function fetcher<T>(url: string, options: RequestInit): Promise<T> {
  const response = await fetch(`${process.env.NODE_URL}${url}`, options);
  return { data: await response.json(), headers: response.headers, status: response.status } as T;
}
