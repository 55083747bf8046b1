package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/tracing"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a cluster whose client and worker make spans.
type fixture struct {
	*testing.T
	spans    *tracing.Tracing
	tracer   trace.Tracer
	recorder *tracetest.SpanRecorder
	client   *futures.Client
	worker   *workers.Worker
	// awaits is closed once an await has begun.
	awaits chan struct{}
}

// begins closes a channel once a span with a name begins.
type begins struct {
	sdk.SpanProcessor
	name  string
	began func()
}

// OnStart implements sdk.SpanProcessor.
func (b begins) OnStart(ctx context.Context, s sdk.ReadWriteSpan) {
	b.SpanProcessor.OnStart(ctx, s)
	if s.Name() == b.name {
		b.began()
	}
}

func newFixture(t *testing.T, o tracing.Options) *fixture {
	t.Helper()
	f := &fixture{T: t, recorder: tracetest.NewSpanRecorder(), awaits: make(chan struct{})}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(
		begins{f.recorder, "await", sync.OnceFunc(func() { close(f.awaits) })}))
	o.Provider, f.tracer = provider, provider.Tracer("test")
	f.spans = tracing.New(o)
	var err error
	f.client, err = futures.New(t.Context(), storetest.New(t), futures.Options{Tracer: f.spans})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.client.Close(context.Background())) })
	f.worker, err = workers.New(f.client, workers.Options{Slots: 4, Middleware: []workers.Middleware{f.spans.Middleware}})
	require.NoError(t, err)
	return f
}

// run has the worker work until the end of the test.
func (f *fixture) run() {
	f.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.worker.Run(ctx) }()
	f.Cleanup(func() {
		stop()
		require.ErrorIs(f, errors.Join(<-ended, context.Canceled), context.Canceled)
	})
	<-f.worker.Ready()
}

// named returns the spans with a name that have ended, in the order of their beginnings.
func (f *fixture) named(name string) []sdk.ReadOnlySpan {
	all := slices.DeleteFunc(f.recorder.Ended(), func(s sdk.ReadOnlySpan) bool { return s.Name() != name })
	slices.SortFunc(all, func(a, b sdk.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return all
}

// one returns the only span with a name.
func (f *fixture) one(name string) sdk.ReadOnlySpan {
	f.Helper()
	all := f.named(name)
	require.Len(f, all, 1, name)
	return all[0]
}

func valueOf(s sdk.ReadOnlySpan, key string) any {
	for _, a := range s.Attributes() {
		if string(a.Key) == key {
			return a.Value.AsInterface()
		}
	}
	return nil
}

// TestSpansOfAFuture has a future fail twice: its attempts are siblings, each a trace of its
// own with a link to the creation.
func TestSpansOfAFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	soon := futures.Backoff(time.Millisecond, time.Millisecond)
	greet := futures.Define[string, string]("greet", futures.Retries(5), soon)
	calls := 0
	require.NoError(t, f.worker.Register(greet.Bind(func(ctx context.Context, name string) (string, error) {
		switch calls++; calls {
		case 1:
			return "", errors.New(strings.Repeat("no", 1000))
		case 2:
			panic("no")
		}
		<-f.awaits
		_, span := f.tracer.Start(ctx, "inside")
		span.End()
		return "hello " + name, nil
	})))
	f.run()
	ctx, request := f.tracer.Start(t.Context(), "request")
	made, err := greet.Submit(ctx, f.client, "world")
	require.NoError(t, err)
	text, err := made.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, "hello world", text)
	request.End()

	create, await := f.one("create go:greet"), f.one("await")
	require.Equal(t, trace.SpanKindProducer, create.SpanKind())
	for _, s := range []sdk.ReadOnlySpan{create, await} {
		require.Equal(t, request.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
		require.Equal(t, made.ID().String(), valueOf(s, "futura.id"), s.Name())
	}
	attempts := f.named("process go:greet")
	require.Len(t, attempts, 3)
	traces := map[trace.TraceID]bool{request.SpanContext().TraceID(): true}
	for i, s := range attempts {
		require.False(t, s.Parent().IsValid())
		require.Equal(t, trace.SpanKindConsumer, s.SpanKind())
		require.Len(t, s.Links(), 1)
		require.Equal(t, create.SpanContext().SpanID(), s.Links()[0].SpanContext.SpanID())
		require.EqualValues(t, i+1, valueOf(s, "futura.attempt"))
		require.Equal(t, made.ID().String(), valueOf(s, "futura.id"))
		require.Equal(t, "go:greet", valueOf(s, "futura.function"))
		require.Equal(t, "default", valueOf(s, "futura.queue"))
		require.Equal(t, []any{"error", "panic", nil}[i], valueOf(s, "error.type"))
		require.Nil(t, valueOf(s, "messaging.system"), "the conventions are in development")
		traces[s.SpanContext().TraceID()] = true
	}
	require.Len(t, traces, 4)
	require.LessOrEqual(t, len(attempts[0].Status().Description), 256)
	require.Equal(t, codes.Unset, attempts[2].Status().Code)
	inside := f.one("inside")
	require.Equal(t, attempts[2].SpanContext().SpanID(), inside.Parent().SpanID())
}

// TestAnAttemptThatSnoozesHasNoError has a function, and a member of a bundle, put off what they do.
func TestAnAttemptThatSnoozesHasNoError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	later := futures.Define[int, int]("later")
	calls, sent := 0, 0
	require.NoError(t, f.worker.Register(later.Bind(func(context.Context, int) (int, error) {
		if calls++; calls == 1 {
			return 0, fmt.Errorf("not yet: %w", workers.Snooze(0))
		}
		return calls, nil
	})))
	require.NoError(t, f.client.SetLaneKind(t.Context(), "mail", futures.LaneSettings{Bundle: "go:send"}))
	require.NoError(t, f.worker.RegisterBundle(f.spans.Bundle("send",
		func(_ context.Context, _ string, members []workers.Member) ([]workers.MemberEnd, error) {
			ends := make([]workers.MemberEnd, len(members))
			if sent++; sent == 1 {
				ends[0].Err = workers.Snooze(0)
			}
			return ends, nil
		})))
	task := futures.Task{Function: "go:send", Lane: futures.Lane{Kind: "mail", Key: "a"}}
	made, err := f.client.SubmitMany(t.Context(), []futures.Task{task, task})
	require.NoError(t, err)
	f.run()
	_, err = later.Call(t.Context(), f.client, 1)
	require.NoError(t, err)
	_, err = f.client.AwaitAll(t.Context(), made)
	require.NoError(t, err)
	require.Len(t, f.named("process go:later"), 2)
	for _, s := range append(f.named("process go:later"), f.named("process go:send")...) {
		require.Equal(t, codes.Unset, s.Status().Code)
		require.Nil(t, valueOf(s, "error.type"))
		require.Empty(t, s.Events())
	}
}

// TestAttemptsAsChildren has attempts be part of the trace of their future: still siblings.
func TestAttemptsAsChildren(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{Child: true})
	greet := futures.Define[string, string]("greet", futures.Backoff(time.Millisecond, time.Millisecond))
	failed := false
	require.NoError(t, f.worker.Register(greet.Bind(func(context.Context, string) (string, error) {
		if !failed {
			failed = true
			return "", errors.New("no")
		}
		return "", nil
	})))
	f.run()
	_, err := greet.Call(t.Context(), f.client, "world")
	require.NoError(t, err)
	create := f.one("create go:greet")
	attempts := f.named("process go:greet")
	require.Len(t, attempts, 2)
	for _, s := range attempts {
		require.Equal(t, create.SpanContext().SpanID(), s.Parent().SpanID())
		require.Equal(t, create.SpanContext().TraceID(), s.SpanContext().TraceID())
		require.Len(t, s.Links(), 1)
	}
	require.Empty(t, f.named("await"), "nothing surrounds it")
}

// TestSpansWithinAFunction has a function submit and await others.
func TestSpansWithinAFunction(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	leaf, root := futures.Define[int, int]("leaf"), futures.Define[int, int]("root")
	require.NoError(t, f.worker.Register(leaf.Bind(func(_ context.Context, n int) (int, error) {
		<-f.awaits
		return n, nil
	})))
	require.NoError(t, f.worker.Register(root.Bind(func(ctx context.Context, n int) (int, error) {
		c, err := futures.FromContext(ctx)
		if err != nil {
			return 0, err
		}
		made, err := leaf.Map(ctx, c, []int{n, n, n})
		if err != nil {
			return 0, err
		}
		results, err := futures.AwaitAll(ctx, made)
		return len(results), err
	})))
	f.run()
	n, err := root.Call(t.Context(), f.client, 1)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	process, create := f.one("process go:root"), f.one("create go:leaf")
	require.Equal(t, process.SpanContext().SpanID(), create.Parent().SpanID())
	require.EqualValues(t, 3, valueOf(create, "futura.futures"))
	require.Equal(t, process.SpanContext().SpanID(), f.one("await").Parent().SpanID())
	leaves := f.named("process go:leaf")
	require.Len(t, leaves, 3)
	for _, s := range leaves {
		require.Equal(t, create.SpanContext().SpanID(), s.Links()[0].SpanContext.SpanID())
	}
}

// TestAClientWithoutATracer submits within a function: the future is linked to the attempt.
func TestAClientWithoutATracer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	plain, err := futures.FromCluster(f.client.Cluster(), futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Close(context.Background())) })
	leaf, root := futures.Define[int, int]("leaf"), futures.Define[int, int]("root")
	require.NoError(t, f.worker.Register(leaf.Bind(func(_ context.Context, n int) (int, error) { return n, nil })))
	require.NoError(t, f.worker.Register(root.Bind(func(ctx context.Context, n int) (int, error) {
		return leaf.Call(ctx, plain, n)
	})))
	f.run()
	_, err = root.Call(t.Context(), f.client, 1)
	require.NoError(t, err)
	links := f.one("process go:leaf").Links()
	require.Len(t, links, 1)
	require.Equal(t, f.one("process go:root").SpanContext().SpanID(), links[0].SpanContext.SpanID())
}

// TestSendsAndForks finds the attempt that sent a future, and the call that forked one.
func TestSendsAndForks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	counter := futures.DefineActor[int]("counter")
	inc := futures.DefineMethod(counter, "inc", func(_ context.Context, n *int, by int) (int, error) {
		*n += by
		return *n, nil
	})
	root := futures.Define[int, string]("root")
	require.NoError(t, f.worker.Register(inc.Bind()))
	require.NoError(t, f.worker.Register(root.Bind(func(ctx context.Context, n int) (string, error) {
		id, err := inc.Send(ctx, "a", n)
		return id.String(), err
	})))
	f.run()
	awaitSent := func(id futures.ID) {
		text, err := root.Of(f.client.Future(id)).Await(t.Context())
		require.NoError(t, err)
		sent, err := layout.ParseID(text)
		require.NoError(t, err)
		_, err = f.client.Future(sent).Await(t.Context())
		require.NoError(t, err)
	}
	made, err := root.Submit(t.Context(), f.client, 1)
	require.NoError(t, err)
	awaitSent(made.ID())

	ctx, span := f.tracer.Start(t.Context(), "request")
	fork, err := f.client.Fork(ctx, made.ID(), futures.ForkOptions{From: futures.ForkFromStart()})
	require.NoError(t, err)
	_, err = f.client.Fork(ctx, made.ID(), futures.ForkOptions{})
	require.ErrorIs(t, err, futures.ErrNothingFailed)
	span.End()
	awaitSent(fork.ID)
	roots, creates := f.named("process go:root"), f.named("create")
	require.Len(t, roots, 2)
	for i, sent := range f.named("process go:counter.inc") {
		require.Equal(t, roots[i].SpanContext().SpanID(), sent.Links()[0].SpanContext.SpanID())
	}
	require.Len(t, creates, 2)
	require.Equal(t, span.SpanContext().SpanID(), creates[0].Parent().SpanID())
	require.Equal(t, creates[0].SpanContext().SpanID(), roots[1].Links()[0].SpanContext.SpanID())
	require.Nil(t, valueOf(creates[0], "futura.queue"))
	require.Equal(t, codes.Error, creates[1].Status().Code)
}

// TestABundleHasALinkForEachMember runs three futures of a lane in one call.
func TestABundleHasALinkForEachMember(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{Child: true})
	require.NoError(t, f.client.SetLaneKind(t.Context(), "mail", futures.LaneSettings{Bundle: "go:send"}))
	require.NoError(t, f.worker.RegisterBundle(f.spans.Bundle("send",
		func(_ context.Context, _ string, members []workers.Member) ([]workers.MemberEnd, error) {
			ends := make([]workers.MemberEnd, len(members))
			ends[len(members)-1].Err = workers.Permanent(errors.New("no"))
			return ends, nil
		})))
	task := futures.Task{Function: "go:send", Lane: futures.Lane{Kind: "mail", Key: "a"}}
	var made []*futures.Future
	links := map[trace.SpanID]string{}
	for range 3 {
		one, err := f.client.Submit(t.Context(), task)
		require.NoError(t, err)
		made = append(made, one)
	}
	for _, s := range f.named("create go:send") {
		links[s.SpanContext().SpanID()] = valueOf(s, "futura.id").(string)
	}
	require.Len(t, links, 3)
	f.run()
	_, err := f.client.AwaitAll(t.Context(), made)
	require.ErrorIs(t, err, futures.ErrFailed)
	call := f.one("process go:send")
	require.Len(t, call.Links(), 3)
	for _, l := range call.Links() {
		require.Contains(t, l.Attributes, attribute.String("futura.id", links[l.SpanContext.SpanID()]))
	}
	require.False(t, call.Parent().IsValid(), "it has no single creation")
	require.Equal(t, "a", valueOf(call, "futura.lane.key"))
	require.Len(t, call.Events(), 1)
	require.Contains(t, call.Events()[0].Attributes, attribute.String("futura.id", made[2].ID().String()))

	alone, err := f.client.Submit(t.Context(), futures.Task{Function: "go:send"})
	require.NoError(t, err)
	_, err = alone.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	require.Len(t, f.named("process go:send"), 2, "one that is no bundle has one span")
}

// TestTracesOfTheirOwn has tasks keep the trace that their submit names.
func TestTracesOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, tracing.Options{})
	own := map[string]string{"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}
	made, err := f.client.Submit(t.Context(), futures.Task{Function: "go:x", Trace: own})
	require.NoError(t, err)
	require.Empty(t, f.recorder.Ended())
	row, err := f.client.Cluster().Get(t.Context(), made.ID())
	require.NoError(t, err)
	require.Equal(t, own, row.Spec.Trace)

	several, err := f.client.SubmitMany(t.Context(), []futures.Task{
		{Function: "go:x", Trace: map[string]string{}}, {Function: "go:y", Queue: "q"},
	})
	require.NoError(t, err)
	create := f.one("create")
	require.Nil(t, valueOf(create, "futura.queue"))
	require.Nil(t, valueOf(create, "futura.function"))
	for i, want := range []string{"", create.SpanContext().SpanID().String()} {
		row, err := f.client.Cluster().Get(t.Context(), several[i].ID())
		require.NoError(t, err)
		require.Contains(t, row.Spec.Trace["traceparent"], want)
		require.Equal(t, want == "", row.Spec.Trace["traceparent"] == "")
	}

	_, err = f.client.Submit(t.Context(), futures.Task{Function: "x"})
	require.ErrorIs(t, err, layout.ErrBadName)
	refused := f.named("create")[1]
	require.Equal(t, codes.Error, refused.Status().Code)
	require.Nil(t, valueOf(refused, "futura.function"), "it may be anything")
}
