package tracing_test

import (
	"context"
	"errors"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/tracing"
	"github.com/futura-run/futura/workers"
)

func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	// A program has an exporter here that sends spans to a collector.
	kept := tracetest.NewInMemoryExporter()
	spans := tracing.New(tracing.Options{Provider: sdk.NewTracerProvider(sdk.WithSyncer(kept))})

	store := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, store, futures.Options{Tracer: spans})
	if err != nil {
		panic(err)
	}
	worker, err := workers.New(client, workers.Options{Middleware: []workers.Middleware{spans.Middleware}})
	if err != nil {
		panic(err)
	}
	greet := futures.Define[string, string]("greet")
	err = worker.Register(greet.Bind(func(_ context.Context, name string) (string, error) { return "hello " + name, nil }))
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	if _, err := greet.Call(ctx, client, "world"); err != nil {
		panic(err)
	}
	stop()
	if err := errors.Join(<-ended, client.Close(context.Background()), store.Close()); err != nil {
		panic(err)
	}
	var create, process tracetest.SpanStub
	for _, span := range kept.GetSpans() {
		if span.Name == "create go:greet" {
			create = span
		} else {
			process = span
		}
	}
	fmt.Println(create.Name, create.SpanKind)
	fmt.Println(process.Name, process.SpanKind)
	fmt.Println("linked:", process.Links[0].SpanContext.SpanID() == create.SpanContext.SpanID())
	// Output:
	// create go:greet producer
	// process go:greet consumer
	// linked: true
}
