package layout

import "github.com/tinylib/msgp/msgp"

func (r *Requirements) appendFields(f fields) fields {
	return f.int("c", r.CPU).int("r", r.RAM).int("g", r.GPU).pairs("l", r.Labels)
}

func (r *Requirements) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "c":
		return readInt(b, &r.CPU)
	case "r":
		return readInt(b, &r.RAM)
	case "g":
		return readInt(b, &r.GPU)
	case "l":
		return readPairs(b, &r.Labels)
	}
	return msgp.Skip(b)
}

func (r *Requirements) empty() bool {
	return r.CPU == 0 && r.RAM == 0 && r.GPU == 0 && len(r.Labels) == 0
}

func (w *Backoff) appendFields(f fields) fields {
	return f.int("b", int64(w.Base)).int("m", int64(w.Max))
}

func (w *Backoff) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "b":
		return readInt(b, &w.Base)
	case "m":
		return readInt(b, &w.Max)
	}
	return msgp.Skip(b)
}

func (r *ChunkRef) appendFields(f fields) fields {
	return f.text("k", r.Kind).text("t", r.Token).int("s", r.Size).int("n", int64(r.Count))
}

func (r *ChunkRef) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "k":
		return readText(b, &r.Kind)
	case "t":
		return readText(b, &r.Token)
	case "s":
		return readInt(b, &r.Size)
	case "n":
		return readInt(b, &r.Count)
	}
	return msgp.Skip(b)
}

func (g *Growth) appendFields(f fields) fields { return f.float("f", g.Factor).int("m", g.Max) }

func (g *Growth) readField(name, b []byte) (rest []byte, err error) {
	switch string(name) {
	case "f":
		g.Factor, rest, err = msgp.ReadFloat64Bytes(b)
		return rest, err
	case "m":
		return readInt(b, &g.Max)
	}
	return msgp.Skip(b)
}

func (p *Pace) appendFields(f fields) fields {
	return f.text("k", p.Key).float("s", p.PerSecond).bool("w", p.Shared)
}

func (p *Pace) readField(name, b []byte) (rest []byte, err error) {
	switch string(name) {
	case "k":
		return readText(b, &p.Key)
	case "s":
		p.PerSecond, rest, err = msgp.ReadFloat64Bytes(b)
		return rest, err
	case "w":
		return readBool(b, &p.Shared)
	}
	return msgp.Skip(b)
}

func (s *Spec) appendFields(f fields) fields {
	f = f.text("f", s.Function).text("c", s.Codec).bytes("a", s.Args).int("az", s.ArgsSize)
	if s.ArgsRef != nil {
		f = f.record("ar", s.ArgsRef)
	}
	f = f.bool("ak", s.ArgsKey).texts("av", s.Argv).bytes("in", s.Inputs)
	if s.InputsRef != nil {
		f = f.record("ir", s.InputsRef)
	}
	f = f.pairs("e", s.Env)
	f = f.text("q", s.Queue).text("o", s.Owner).text("lb", s.Label).texts("tg", s.Tags)
	f = f.int("p", int64(s.Priority))
	if !s.Requirements.empty() {
		f = f.record("r", &s.Requirements)
	}
	if !s.Near.IsZero() {
		f = f.bytes("ne", s.Near[:])
	}
	f = f.bool("nm", s.MustBeNear).int("pl", int64(s.Parallel))
	if s.Pace != nil {
		f = f.record("pc", s.Pace)
	}
	if s.Growth != nil {
		f = f.record("gr", s.Growth)
	}
	if s.Unique != nil {
		f = f.record("uq", s.Unique)
	}
	if !s.Lane.IsZero() {
		f = f.record("ln", &s.Lane)
	}
	f = f.bool("la", s.Aside).bool("bm", s.Member).bool("bd", s.Bundle).int("mr", int64(s.MaxRetries))
	if s.Backoff != (Backoff{}) {
		f = f.record("b", &s.Backoff)
	}
	f = f.int("ea", s.ExpiresAt).int("da", s.Deadline)
	f = f.int("to", int64(s.Timeout)).bool("rc", s.AllowReconstruction).bool("ob", s.AsObject)
	f = f.text("sc", s.Schedule).int("sa", s.ScheduledAt)
	return f.text("s", string(s.Session)).pairs("t", s.Trace).int("at", s.SubmittedAt)
}

func (s *Spec) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "f":
		return readText(b, &s.Function)
	case "c":
		return readText(b, &s.Codec)
	case "a":
		return readBytes(b, &s.Args)
	case "az":
		return readInt(b, &s.ArgsSize)
	case "ar":
		return readRef(b, &s.ArgsRef)
	case "ak":
		return readBool(b, &s.ArgsKey)
	case "uq":
		return readRef(b, &s.Unique)
	case "av":
		return readTexts(b, &s.Argv)
	case "in":
		return readIDs(b, &s.Inputs)
	case "ir":
		return readRef(b, &s.InputsRef)
	case "e":
		return readPairs(b, &s.Env)
	case "s":
		return readText(b, &s.Session)
	case "t":
		return readPairs(b, &s.Trace)
	case "at":
		return readInt(b, &s.SubmittedAt)
	case "sc":
		return readText(b, &s.Schedule)
	case "sa":
		return readInt(b, &s.ScheduledAt)
	}
	return s.readPlacement(name, b)
}

// readPlacement reads the fields that control where and how often the future
// runs.
func (s *Spec) readPlacement(name, b []byte) (rest []byte, err error) {
	switch string(name) {
	case "q":
		return readText(b, &s.Queue)
	case "o":
		return readText(b, &s.Owner)
	case "tg":
		return readTexts(b, &s.Tags)
	case "lb":
		return readText(b, &s.Label)
	case "p":
		s.Priority, rest, err = msgp.ReadUint8Bytes(b)
		return rest, err
	case "r":
		return readRecord(b, &s.Requirements)
	case "ne":
		return readID(b, &s.Near)
	case "nm":
		return readBool(b, &s.MustBeNear)
	case "pl":
		return readInt(b, &s.Parallel)
	case "pc":
		return readRef(b, &s.Pace)
	case "gr":
		return readRef(b, &s.Growth)
	case "ln":
		return readRecord(b, &s.Lane)
	case "la":
		return readBool(b, &s.Aside)
	case "bm":
		return readBool(b, &s.Member)
	case "bd":
		return readBool(b, &s.Bundle)
	case "mr":
		return readInt(b, &s.MaxRetries)
	case "b":
		return readRecord(b, &s.Backoff)
	case "to":
		return readInt(b, &s.Timeout)
	case "ea":
		return readInt(b, &s.ExpiresAt)
	case "da":
		return readInt(b, &s.Deadline)
	case "rc":
		return readBool(b, &s.AllowReconstruction)
	case "ob":
		return readBool(b, &s.AsObject)
	}
	return msgp.Skip(b)
}
