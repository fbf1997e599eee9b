import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.BlocksApi;
import org.openapitools.client.api.DevelopmentApi;
import org.openapitools.client.model.InputImpersonate;
import org.openapitools.client.model.InputSendTransaction;
import org.openapitools.client.model.ResponseBlockTransaction;

/** Reads a block with transactions through the client that OpenAPI Generator makes for Java. NODE_URL is the URL of the server. */
public class Run {
  public static void main(String[] arguments) throws Exception {
    String alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("NODE_URL"));
    String body = "{\"Transaction\": {\"From\": \"" + alice + "\", \"To\": \"" + alice + "\", \"Value\": \"1\"}}";
    InputSendTransaction input = client.getObjectMapper().readValue(body, InputSendTransaction.class);
    DevelopmentApi development = new DevelopmentApi(client);
    development.impersonate(new InputImpersonate().address(alice));
    String sent = development.sendTransaction(input).getTransactionHash();
    for (boolean whole : new boolean[] {true, false}) {
      List<ResponseBlockTransaction> found = new BlocksApi(client).getBlockByNumber("latest", whole).getBlock().getTransactions();
      boolean complete = alice.equals(found.get(0).getFrom());
      if (found.size() != 1 || !found.get(0).getHash().equals(sent) || complete != whole) {
        throw new AssertionError(found);
      }
    }
    System.out.println("OpenAPI Generator, java: a block with transactions was read");
  }
}
