package bench

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/futures"
)

// stepsEach is how many steps a future has.
const stepsEach = 10

// inSteps compares futures of ten steps with plain ones: the ratio is that of the time that they take.
func inSteps(ctx context.Context, r *run) error {
	n, w := r.futures(5_000), r.workers(2)
	build := func(ctx context.Context) ([]*futures.Future, int, error) {
		all, err := r.submitAll(ctx, n)
		return all, 0, err
	}
	plain, _, err := r.shape(ctx, "plain", w, build)
	if err != nil {
		return err
	}
	before := r.mark()
	stepped, _, err := r.shapeOf(ctx, "ten steps", w, tenSteps, build)
	r.spent(before, n)
	r.report.FuturesPerSecond = stepped.FuturesPerSecond
	r.report.Ratio = round(stepped.RunMS/max(plain.RunMS, 1), 2)
	return err
}

func tenSteps(ctx context.Context, args []byte) ([]byte, error) {
	for i := range stepsEach {
		if _, err := futures.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil }); err != nil {
			return nil, err
		}
	}
	return args, nil
}
