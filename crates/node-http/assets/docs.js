// Shows the OpenAPI document in Swagger UI, with this server as the target of requests.

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

async function load() {
  const response = await fetch("../openapi.json");
  if (!response.ok) throw new Error(`Cannot load openapi.json: status ${response.status}`);
  const spec = await response.json();
  // The base URL of this page, which may include the prefix of a proxy.
  spec.servers = [{ url: new URL("..", location.href).href.replace(/\/$/, "") }];
  SwaggerUIBundle({
    spec,
    dom_id: "#swagger-ui",
    layout: "BaseLayout",
    presets: [SwaggerUIBundle.presets.apis],
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    filter: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    // The default would send the document to a public validator.
    validatorUrl: null,
  });
}

load().catch((error) => (document.getElementById("swagger-ui").textContent = error.message));
