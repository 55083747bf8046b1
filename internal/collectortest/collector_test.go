package collectortest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// span is a span with the name of the process that sent it.
type span struct {
	ptrace.Span
	service string
}

func (s span) id() string     { return s.SpanID().String() }
func (s span) trace() string  { return s.TraceID().String() }
func (s span) parent() string { return s.ParentSpanID().String() }

// text is an attribute as text, empty for none.
func (s span) text(key string) string {
	value, _ := s.Attributes().Get(key)
	return value.AsString()
}

// collector is the receiver of a collector, which keeps what it gets.
type collector struct {
	url string

	mu    sync.Mutex
	spans []span
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	c := &collector{url: "http://" + address}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.GRPC = otlpreceiver.Config{}.Protocols.GRPC // none
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	sink, err := consumer.NewTraces(c.take)
	require.NoError(t, err)
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return c
}

// take implements consumer.ConsumeTracesFunc.
func (c *collector) take(_ context.Context, traces ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		service, _ := resource.Resource().Attributes().Get("service.name")
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				c.spans = append(c.spans, span{s, service.AsString()})
			}
		}
	}
	return nil
}

// named returns the spans with a name.
func (c *collector) named(name string) (all []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name() == name {
			all = append(all, s)
		}
	}
	return all
}

// one returns the only span with a name.
func (c *collector) one(t *testing.T, name string) span {
	t.Helper()
	all := c.named(name)
	require.Len(t, all, 1, name)
	return all[0]
}
