package mutants

// protocolMutants are faults in the messages of peers.
func protocolMutants() []mutant {
	const scan, spelling, check = "protocol/scan.go", "protocol/spelling.go", "protocol/check.go"
	messages := suites{{of: "protocol"}}
	return []mutant{
		{name: "a message is nested one deeper than it may be", file: scan, by: messages,
			old: "if depth > l.Depth {", new: "if depth > l.Depth+1 {"},
		{name: "texts are counted as if they were values", file: scan, by: messages,
			old: "i = endOfString(data, i)", new: "_ = endOfString(data, i)"},
		{name: "an escaped quote ends a text", file: scan, by: messages,
			old: `if data[i] == '\\' {`, new: `if data[i] == '/' {`},
		{name: "empty objects are free", file: scan, by: messages,
			old: "if objects > sparseObjects &&", new: "if objects > 100*sparseObjects &&"},
		{name: "two readers see two ids in one message", file: spelling, by: messages,
			old: `value != "" && s != value {`, new: `value != "" && s == "none" {`},
		{name: "more attempts than the wire has room for are sent", file: spelling, by: messages,
			old: "c.MaxAttempts = clamp(m.MaxAttempts)", new: "c.MaxAttempts = m.MaxAttempts"},
		{name: "more attempts than the wire has room for are read", file: spelling, by: messages,
			old: "\t\tm.MaxAttempts = clamp(m.MaxAttempts)\n", new: ""},
		{name: "heads of b7s don't find the ids of an answer", file: spelling, by: messages,
			old: "RequestPlain: m.RequestID, RequestID: m.RequestID,", new: "RequestID: m.RequestID,"},
		{name: "nodes of b7s get order MACs", file: spelling, by: messages,
			old: `c.Module, c.OrderMAC, c.Priority, c.Items = "", "", 0, nil`,
			new: `c.Module, c.Priority, c.Items = "", 0, nil`},
		{name: "a batch's reply is taken for a single one's", file: "protocol/codec.go", by: messages,
			old: "if m == nil || h.Type == TypeExecuteResponse {", new: "if m == nil {"},
		{name: "an item that was not run succeeded", file: "protocol/function.go", by: messages,
			old: "return r.Code == CodeOK && r.Result.ExitCode == 0", new: "return r.Result.ExitCode == 0"},
		{name: "a method leads to the directory above", file: check, by: messages,
			old: `|| strings.Contains(value, "..") `, new: ""},
		{name: "the id of a chunk is a path", file: check, by: messages,
			old: `"0123456789abcdefABCDEF:-"`, new: `"0123456789abcdefABCDEF:-./esc"`},
		{name: "the arguments of an item are of any size", file: check, by: messages,
			old: "return len(list) > c.limits.Arguments || size(list) > c.limits.ArgumentBytes",
			new: "return len(list) > c.limits.Arguments"},
		{name: "an order has fewer items than arguments", file: "protocol/check_orders.go", by: messages,
			old: "len(m.Items) != 0 && len(m.Items) != len(m.Arguments)", new: "len(m.Items) > len(m.Arguments)"},
	}
}
