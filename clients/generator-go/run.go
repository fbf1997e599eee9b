// Reads a block with transactions through the client that OpenAPI Generator makes for Go. NODE_URL is the URL of the server.
package main

import (
	"context"
	"fmt"
	"os"

	node "github.com/GIT_USER_ID/GIT_REPO_ID/openapi"
)

const alice = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

// Returns a result, or ends the program if there is an error.
func must[T any](result T, response any, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

func main() {
	configuration := node.NewConfiguration()
	configuration.Servers = node.ServerConfigurations{{URL: os.Getenv("NODE_URL")}}
	client, background := node.NewAPIClient(configuration), context.Background()
	filter := node.NewInputNewFilter(*node.NewFilterObject("", "", "", []string{}))
	must(client.LogsAPI.NewFilter(background).InputNewFilter(*filter).Execute())
	blocks := must(client.LogsAPI.NewBlockFilterByGet(background).Execute())
	transaction := node.NewInputSendTransactionTransaction(alice)
	transaction.SetTo(alice)
	transaction.SetValue("1")
	sent := must(client.DevelopmentAPI.SendTransaction(background).InputSendTransaction(*node.NewInputSendTransaction(*transaction)).Execute())
	for _, flag := range []bool{true, false} {
		found := must(client.BlocksAPI.GetBlockByNumber(background, "latest", flag).Execute()).Block.Get().Transactions
		if len(found) != 1 || found[0].Hash != sent.TransactionHash || (found[0].GetFrom() == alice) != flag {
			panic(fmt.Sprint(flag, found))
		}
	}
	changes := must(client.LogsAPI.GetFilterChanges(background, blocks.FilterId).Execute()).Result
	if len(changes) != 1 || changes[0].String == nil {
		panic(fmt.Sprint(changes))
	}
	called := must(client.CallsAPI.Call(background).InputCall(*node.NewInputCall(node.ParamsTransaction{To: transaction.To})).Execute())
	if called.Data != "0x" {
		panic(called.Data)
	}
	fmt.Println("OpenAPI Generator, go: a block with transactions was read")
}
