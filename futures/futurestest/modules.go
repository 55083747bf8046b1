package futurestest

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// RunModules has WASM modules run by a runner, such as a wasm.Executor, which the caller
// closes, or by a stand-in of the test. It must come before the first Await, Advance and
// Run. Without it, futures of modules fail as unloadable. The clock stands still while a
// module runs.
func (c *Cluster) RunModules(r workers.ModuleRunner) { c.modules.runner = r }

// modules passes calls on to the runner of the test.
type modules struct{ runner workers.ModuleRunner }

// RunModule implements workers.ModuleRunner.
func (m *modules) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	if m.runner == nil {
		return workers.ModuleOutcome{
			Kind: layout.KindUnloadable, Message: "the test has no runner of modules: give the cluster one with RunModules",
		}, nil
	}
	return m.runner.RunModule(ctx, call)
}
