package mutants

// traceMutants are faults in the spans of futures, and in which of them are kept.
func traceMutants() []mutant {
	spans := suites{{of: "futures/tracing"}}
	sampled := suites{{of: "internal/telemetry", run: "Samplers"}}
	sent := suites{{of: "internal/telemetry", run: "TriedAgain"}}
	traced := suites{{of: "futures/httpapi/stack", run: "Traced"}}
	return []mutant{
		{name: "an attempt has no link", file: "futures/tracing/process.go", by: spans,
			old: "links = []trace.Link{{SpanContext: link}}", new: "_ = link"},
		{name: "an attempt is part of the trace of its creation", file: "futures/tracing/process.go", by: spans,
			old: "if t.child && ", new: "if "},
		{name: "what an attempt submits has its creation", file: "futures/tracing/process.go", by: spans,
			old: "\treturn Inject(ctx), span\n", new: "\treturn ctx, span\n"},
		{name: "a panic is no failure of a span", file: "futures/tracing/process.go", by: spans,
			old: "\tif !returned {\n", new: "\tif false {\n"},
		{name: "the name of a span has the id of a module", file: "futures/tracing/attributes.go", by: spans,
			old: "if isModule && isContentID(module) {", new: "if isModule && isContentID(module) && false {"},
		{name: "a span is named by anything", file: "futures/tracing/attributes.go", by: spans,
			old: "\tif layout.CheckFunctionName(function) != nil {\n\t\treturn operation\n\t}\n", new: ""},
		{name: "a state of any size is stored", file: "futures/tracing/context.go", by: spans,
			old: "if len(carrier[state]) > maxState {", new: "if false {"},
		{name: "a task's own trace is lost", file: "futures/tracing/tracing.go", by: spans,
			old: "\tif !follow {\n", new: "\tif false {\n"},
		{name: "an attempt is sampled by itself", file: "internal/telemetry/telemetry.go", by: sampled,
			old: "if len(p.Links) == 0 {", new: "if true {"},
		{name: "a refusal is tried again", file: "internal/telemetry/otlp.go", by: sent,
			old: "\t\tafter = -1\n", new: "\t\tafter = 0\n"},
		{name: "a redirect is followed", file: "internal/telemetry/otlp.go", by: sent,
			old: "\t\treturn http.ErrUseLastResponse\n", new: "\t\treturn nil\n"},
		{name: "requests that anyone may send are traced", file: "futures/httpapi/stack/stack.go", by: traced,
			old: "s.options.Trace != nil && found.permission != Public && ", new: "s.options.Trace != nil && "},
		{name: "a request is not logged in its trace", file: "futures/httpapi/stack/stack.go", by: traced,
			old: "\t\tr = r.WithContext(ctx)\n",
			new: "\t\tr := r.WithContext(ctx)\n\t\ts.answer(out, r, q, found)\n\t\treturn\n"},
	}
}
