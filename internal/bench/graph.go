package bench

import (
	"context"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Shape is what futures that use each other cost.
type Shape struct {
	Name    string `json:"shape"`
	Futures int    `json:"futures"`
	Edges   int    `json:"edges"`
	// SubmitMS is the time until all are submitted; then workers start, and RunMS
	// later the client has all results.
	SubmitMS         float64 `json:"submit_ms"`
	RunMS            float64 `json:"run_ms"`
	FuturesPerSecond float64 `json:"futures_per_second"`
	// CPUPerFuture is processor time of this process, in microseconds.
	CPUPerFuture float64 `json:"cpu_us_per_future"`
	// These are for each edge, beyond what as many futures without edges take in the
	// same run. Fewer transactions than those take are negative.
	TransactionsPerEdge float64 `json:"transactions_per_edge"`
	MutationsPerEdge    float64 `json:"mutations_per_edge"`
	ReadsPerEdge        float64 `json:"reads_per_edge"`
}

// Sizes of graphs.
const (
	layerWidth, chainLength = 1000, 1000
	// fan is how many inputs or users one future has. maxFan is the most that it may
	// have.
	fan, maxFan = 10_000, 100_000
)

// graphs runs futures that use the results of others: layers of them, diamonds, a
// chain, one that uses many, and many that use one; and as many without inputs as
// the layers have. Futures have 100 bytes of arguments and of results; those of
// layers and diamonds get the results of their inputs as arguments.
func graphs(ctx context.Context, r *run) error {
	n, w := r.futures(100_000), r.workers(2)
	many := fan
	if r.options.Futures > 0 {
		many = min(n, maxFan)
	}
	plain, alone, err := r.shape(ctx, "plain", w, func(ctx context.Context) ([]*futures.Future, int, error) {
		all, err := r.submitAll(ctx, n)
		return all, 0, err
	})
	if err != nil {
		return err
	}
	before := r.mark()
	for _, s := range []struct {
		name  string
		build func(context.Context) ([]*futures.Future, int, error)
	}{
		{"layers", func(ctx context.Context) ([]*futures.Future, int, error) { return r.layers(ctx, n) }},
		{"diamonds", func(ctx context.Context) ([]*futures.Future, int, error) { return r.diamonds(ctx, n) }},
		{"chain", func(ctx context.Context) ([]*futures.Future, int, error) { return r.chain(ctx, min(n, chainLength)) }},
		{"fan-in", func(ctx context.Context) ([]*futures.Future, int, error) { return r.fanIn(ctx, many) }},
		{"fan-out", func(ctx context.Context) ([]*futures.Future, int, error) { return r.fanOut(ctx, many) }},
	} {
		shape, usage, err := r.shape(ctx, s.name, w, s.build)
		if err != nil {
			return err
		}
		if s.name == "layers" {
			r.spent(before, n)
			r.report.FuturesPerSecond = shape.FuturesPerSecond
			r.report.Ratio = round(shape.FuturesPerSecond/plain.FuturesPerSecond, 3)
		}
		alone := alone.times(float64(shape.Futures) / float64(n))
		edges := float64(shape.Edges)
		shape.TransactionsPerEdge = signed(float64(usage.Commits-alone.Commits)/edges, 3)
		shape.MutationsPerEdge = signed(float64(usage.Mutations-alone.Mutations)/edges, 3)
		shape.ReadsPerEdge = signed(float64(usage.Reads-alone.Reads)/edges, 3)
		r.report.Shapes = append(r.report.Shapes, shape)
	}
	r.report.Shapes = append([]Shape{plain}, r.report.Shapes...)
	return nil
}

func (u Usage) times(f float64) Usage {
	scaled := func(n int64) int64 { return int64(float64(n) * f) }
	return Usage{scaled(u.Commits), scaled(u.Conflicts), scaled(u.Mutations), scaled(u.Reads), scaled(u.Keys)}
}

// signed is round for numbers that may be negative.
func signed(v float64, digits int) float64 {
	if v < 0 {
		return -round(-v, digits)
	}
	return round(v, digits)
}

// shape submits a graph in a fresh cluster, and then has workers run it.
func (r *run) shape(ctx context.Context, name string, w int,
	build func(context.Context) (all []*futures.Future, edges int, err error),
) (s Shape, usage Usage, err error) {
	return r.shapeOf(ctx, name, w, func(_ context.Context, args []byte) ([]byte, error) {
		return args[:min(len(args), argsSize)], nil
	}, build)
}

// shapeOf is shape with a function.
func (r *run) shapeOf(ctx context.Context, name string, w int, fn workers.Function,
	build func(context.Context) (all []*futures.Future, edges int, err error),
) (s Shape, usage Usage, err error) {
	err = r.within(ctx, func() error {
		before, start := r.mark(), time.Now()
		all, edges, err := build(ctx)
		if err != nil {
			return err
		}
		s = Shape{Name: name, Futures: len(all), Edges: edges, SubmitMS: millis(time.Since(start))}
		r.begin("run "+name, len(all))
		pass := func(ctx context.Context, args []byte) ([]byte, error) {
			r.step(1)
			return fn(ctx, args)
		}
		start = time.Now()
		return working(ctx, r.client.Cluster(), w, workers.Options{}, pass, func() error {
			_, err := r.client.AwaitAll(ctx, all)
			took := time.Since(start)
			s.RunMS, s.FuturesPerSecond = millis(took), perSecond(len(all), took)
			now := r.mark()
			usage = now.usage.minus(before.usage)
			spent := now.cost.minus(before.cost)
			s.CPUPerFuture = round((spent.user+spent.system).Seconds()*1e6/float64(len(all)), 2)
			return err
		})
	})
	return s, usage, err
}

func millis(d time.Duration) float64 { return round(d.Seconds()*1000, 1) }

// layers submits n futures in layers: each takes the results of two neighbours in
// the layer before.
func (r *run) layers(ctx context.Context, n int) (all []*futures.Future, edges int, err error) {
	width := max(min(layerWidth, n/10), 1)
	r.begin("submit layers", n)
	var above []*futures.Future
	for len(all) < n {
		layer, err := r.submitTasks(ctx, min(width, n-len(all)), func(i int) futures.Task {
			t := task(len(all) + i)
			if above != nil {
				t.Args, t.Codec = nil, futures.CodecInputs
				t.After = []futures.ID{above[i].ID(), above[(i+1)%len(above)].ID()}
			}
			return t
		})
		if err != nil {
			return nil, 0, err
		}
		if above != nil {
			edges += 2 * len(layer)
		}
		all, above = append(all, layer...), layer
	}
	return all, edges, nil
}

// diamonds submits about n futures in fours: two that take the result of one, and
// one that takes both results.
func (r *run) diamonds(ctx context.Context, n int) (all []*futures.Future, edges int, err error) {
	r.begin("submit diamonds", n)
	for len(all) < n {
		width := min(layerWidth, (n-len(all)+3)/4)
		first := len(all)
		submit := func(count int, inputs func(i int) []futures.ID) ([]*futures.Future, error) {
			layer, err := r.submitTasks(ctx, count, func(i int) futures.Task {
				t := task(first + i)
				if t.After = inputs(i); t.After != nil {
					t.Args, t.Codec = nil, futures.CodecInputs
				}
				return t
			})
			all = append(all, layer...)
			return layer, err
		}
		tops, err := submit(width, func(int) []futures.ID { return nil })
		if err != nil {
			return nil, 0, err
		}
		sides, err := submit(2*width, func(i int) []futures.ID { return []futures.ID{tops[i/2].ID()} })
		if err != nil {
			return nil, 0, err
		}
		_, err = submit(width, func(i int) []futures.ID { return []futures.ID{sides[2*i].ID(), sides[2*i+1].ID()} })
		if err != nil {
			return nil, 0, err
		}
		edges += 4 * width
	}
	return all, edges, nil
}

// chain submits n futures one by one, each with the result of the one before.
func (r *run) chain(ctx context.Context, n int) (all []*futures.Future, edges int, err error) {
	r.begin("submit a chain", n)
	for i := range n {
		t := task(i)
		if i > 0 {
			t.Args, t.Codec, t.After = nil, futures.CodecInputs, []futures.ID{all[i-1].ID()}
		}
		f, err := r.client.Submit(ctx, t)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, f)
		r.step(1)
	}
	return all, n - 1, nil
}

// fanIn submits n futures, and one that waits for all of them.
func (r *run) fanIn(ctx context.Context, n int) (all []*futures.Future, edges int, err error) {
	all, err = r.submitAll(ctx, n)
	if err != nil {
		return nil, 0, err
	}
	t := task(n)
	for _, f := range all {
		t.After = append(t.After, f.ID())
	}
	f, err := r.client.Submit(ctx, t)
	return append(all, f), n, err
}

// fanOut submits a future, and n that wait for it.
func (r *run) fanOut(ctx context.Context, n int) (all []*futures.Future, edges int, err error) {
	f, err := r.client.Submit(ctx, task(0))
	if err != nil {
		return nil, 0, err
	}
	r.begin("submit", n)
	all, err = r.submitTasks(ctx, n, func(i int) futures.Task {
		t := task(i + 1)
		t.After = []futures.ID{f.ID()}
		return t
	})
	return append(all, f), n, err
}
