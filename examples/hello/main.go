package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
)

var greet = futures.Define[string, string]("greet", futures.Retries(5))

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func main() {
	ctx := context.Background()
	node, err := futura.Open(ctx, "embedded:./data", futura.Function(greet.Bind(hello)))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	fmt.Println(greet.Call(ctx, node.Client, "world", futures.Delay(time.Second)))
}
