package wasm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFieldsOfInstances has all that the engine keeps of an instance. With another version of the engine, see of
// each new field whether a call can change it: if so, it must be restored, or else compared.
func TestFieldsOfInstances(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Config{Isolation: IsolationInProcess}).backend.(*inprocess).engine
	module, err := e.runtime.InstantiateModule(t.Context(), e.blank, e.instance)
	require.NoError(t, err)
	defer func() { require.NoError(t, module.Close(t.Context())) }()
	instance := reflect.ValueOf(module).Elem()
	field := func(name string) reflect.Type { return instance.FieldByName(name).Type() }
	for _, part := range []struct {
		kept     reflect.Type
		changed  []string // by calls: restored, compared, or made anew
		constant []string
	}{
		{instance.Type(),
			[]string{"MemoryInstance", "Tables", "Engine", "DataInstances", "ElementInstances", "Sys", "Closed"},
			[]string{"WazeroOnlyType", "ModuleName", "Exports", "Globals", "Tags", "TypeIDs", "CodeCloser", "s", "prev",
				"next", "Source", "CloseNotifier"}},
		{field("MemoryInstance").Elem(),
			[]string{"Buffer", "Cap"},
			[]string{"WazeroOnlyType", "Min", "Max", "Shared", "definition", "Mux", "waiters", "ownerModuleEngine",
				"expBuffer"}},
		{field("Tables").Elem().Elem(),
			[]string{"References"},
			[]string{"Min", "Max", "Type", "involvingModuleInstances", "involvingModuleInstancesMutex"}},
		{instance.FieldByName("Engine").Elem().Type().Elem(),
			[]string{"opaque", "localFunctionInstances"},
			[]string{"opaquePtr", "parent", "module", "importedFunctions", "listeners"}},
	} {
		var names []string
		for i := range part.kept.NumField() {
			names = append(names, part.kept.Field(i).Name)
		}
		require.ElementsMatch(t, append(part.changed, part.constant...), names, part.kept.String())
	}
}
