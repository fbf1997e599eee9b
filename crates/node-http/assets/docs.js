// Shows the description of the interface, and sends what is tried out to this server.

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

async function load() {
  const answer = await fetch("../openapi.json");
  if (!answer.ok) throw new Error(`The description of the interface cannot be read: ${answer.status}`);
  const spec = await answer.json();
  // Where this page comes from, which a proxy may have moved.
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
    // Otherwise the description would be sent elsewhere.
    validatorUrl: null,
  });
}

load().catch((error) => (document.getElementById("swagger-ui").textContent = error.message));
