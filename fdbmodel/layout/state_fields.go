package layout

import "github.com/tinylib/msgp/msgp"

func (t *Token) appendFields(f fields) fields {
	return f.text("w", string(t.Worker)).int("s", t.Sequence)
}

func (t *Token) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readText(b, &t.Worker)
	case "s":
		return readInt(b, &t.Sequence)
	}
	return msgp.Skip(b)
}

func (a *Attempts) appendFields(f fields) fields {
	f = f.int("n", int64(a.Failed)).int("c", int64(a.Crashes)).int("p", int64(a.PutBack))
	f = f.int("r", int64(a.Rebuilt)).int("d", a.Due).int("m", a.RAM)
	f = f.text("w", string(a.Assigned)).text("y", a.Reason).text("h", string(a.Near)).int("i", int64(a.NearWait))
	f = f.bool("j", a.Displaced).bool("l", a.Slot).int("s", int64(a.Snoozed)).bool("f", a.Lifted)
	return a.Refused.appendTo(a.Deaths.appendTo(f.bool("k", a.Taken), "x"), "u")
}

func (a *Attempts) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "n":
		return readInt(b, &a.Failed)
	case "c":
		return readInt(b, &a.Crashes)
	case "p":
		return readInt(b, &a.PutBack)
	case "r":
		return readInt(b, &a.Rebuilt)
	case "d":
		return readInt(b, &a.Due)
	case "m":
		return readInt(b, &a.RAM)
	case "w":
		return readText(b, &a.Assigned)
	case "y":
		return readText(b, &a.Reason)
	case "h":
		return readText(b, &a.Near)
	case "i":
		return readInt(b, &a.NearWait)
	case "j":
		return readBool(b, &a.Displaced)
	case "l":
		return readBool(b, &a.Slot)
	case "s":
		return readInt(b, &a.Snoozed)
	case "f":
		return readBool(b, &a.Lifted)
	case "k":
		return readBool(b, &a.Taken)
	case "x":
		return readDeaths(b, &a.Deaths)
	case "u":
		return readRefusals(b, &a.Refused)
	}
	return msgp.Skip(b)
}

func (b *BlockedRecord) appendFields(f fields) fields {
	return f.int("n", int64(b.Linked)).bool("o", b.Objects)
}

func (b *BlockedRecord) readField(name, data []byte) ([]byte, error) {
	switch string(name) {
	case "n":
		return readInt(data, &b.Linked)
	case "o":
		return readBool(data, &b.Objects)
	}
	return msgp.Skip(data)
}

func (s *SettlingRecord) appendFields(f fields) fields {
	if !s.Told.IsZero() {
		f = f.bytes("t", s.Told[:])
	}
	return f.int("r", int64(s.Released))
}

func (s *SettlingRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "t":
		return readID(b, &s.Told)
	case "r":
		return readInt(b, &s.Released)
	}
	return msgp.Skip(b)
}

func (e *Exception) appendFields(f fields) fields {
	f = f.text("k", string(e.Kind)).text("m", e.Message).int("a", int64(e.Attempt)).text("w", string(e.Worker))
	f = f.bool("f", e.Final).bool("p", e.Permanent).int("t", e.At).int("x", int64(e.ExitCode))
	f = f.int("b", e.StartedAt).bytes("o", e.Stdout).bytes("e", e.Stderr)
	if e.StderrRef != nil {
		f = f.record("er", e.StderrRef)
	}
	f = f.bool("tr", e.Truncated)
	if len(e.FailedOn) > 0 {
		f = f.name("fo")
		f.b = msgp.AppendArrayHeader(f.b, uint32(len(e.FailedOn)))
		for _, worker := range e.FailedOn {
			f.b = msgp.AppendString(f.b, string(worker))
		}
	}
	if e.Usage != nil {
		f = f.record("us", e.Usage)
	}
	return f
}

func (e *Exception) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "k":
		return readText(b, &e.Kind)
	case "m":
		return readText(b, &e.Message)
	case "a":
		return readInt(b, &e.Attempt)
	case "w":
		return readText(b, &e.Worker)
	case "f":
		return readBool(b, &e.Final)
	case "p":
		return readBool(b, &e.Permanent)
	case "t":
		return readInt(b, &e.At)
	case "x":
		return readInt(b, &e.ExitCode)
	case "o":
		return readBytes(b, &e.Stdout)
	case "e":
		return readBytes(b, &e.Stderr)
	case "er":
		return readRef(b, &e.StderrRef)
	case "b":
		return readInt(b, &e.StartedAt)
	case "tr":
		return readBool(b, &e.Truncated)
	case "fo":
		return readTexts(b, &e.FailedOn)
	case "us":
		return readRef(b, &e.Usage)
	}
	return msgp.Skip(b)
}

func (c *CancelRequest) appendFields(f fields) fields { return f.text("r", c.Reason).int("t", c.At) }

func (c *CancelRequest) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "r":
		return readText(b, &c.Reason)
	case "t":
		return readInt(b, &c.At)
	}
	return msgp.Skip(b)
}

func (r *Result) appendFields(f fields) fields {
	f = r.Token.appendFields(f).text("c", r.Codec).bytes("v", r.Value)
	if r.ValueRef != nil {
		f = f.record("vr", r.ValueRef)
	}
	f = f.text("ob", r.Object).int("z", r.Size).int("x", int64(r.ExitCode)).bytes("e", r.Stderr)
	if r.StderrRef != nil {
		f = f.record("er", r.StderrRef)
	}
	f = f.bool("tr", r.Truncated).int("a", int64(r.Attempt)).int("d", int64(r.RunTime)).int("t", r.At)
	if r.Usage != nil {
		f = f.record("us", r.Usage)
	}
	return f
}

func (u *Usage) appendFields(f fields) fields {
	return f.int("u", int64(u.CPUUser)).int("s", int64(u.CPUSys)).int("m", u.Memory)
}

func (u *Usage) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "u":
		return readInt(b, &u.CPUUser)
	case "s":
		return readInt(b, &u.CPUSys)
	case "m":
		return readInt(b, &u.Memory)
	}
	return msgp.Skip(b)
}

func (r *Result) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "c":
		return readText(b, &r.Codec)
	case "v":
		return readBytes(b, &r.Value)
	case "vr":
		return readRef(b, &r.ValueRef)
	case "ob":
		return readText(b, &r.Object)
	case "z":
		return readInt(b, &r.Size)
	case "x":
		return readInt(b, &r.ExitCode)
	case "e":
		return readBytes(b, &r.Stderr)
	case "er":
		return readRef(b, &r.StderrRef)
	case "tr":
		return readBool(b, &r.Truncated)
	case "a":
		return readInt(b, &r.Attempt)
	case "d":
		return readInt(b, &r.RunTime)
	case "t":
		return readInt(b, &r.At)
	case "us":
		return readRef(b, &r.Usage)
	}
	return r.Token.readField(name, b)
}

func (p *PinsRecord) appendFields(f fields) fields {
	return f.texts("h", p.Holders).texts("s", p.Sessions)
}

func (p *PinsRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "h":
		return readTexts(b, &p.Holders)
	case "s":
		return readTexts(b, &p.Sessions)
	}
	return msgp.Skip(b)
}

func (c *CopyRecord) appendFields(f fields) fields {
	return f.text("w", string(c.Worker)).text("ob", c.Object).int("z", c.Size).int("t", c.At).int("aw", c.Away)
}

func (c *CopyRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readText(b, &c.Worker)
	case "ob":
		return readText(b, &c.Object)
	case "z":
		return readInt(b, &c.Size)
	case "t":
		return readInt(b, &c.At)
	case "aw":
		return readInt(b, &c.Away)
	}
	return msgp.Skip(b)
}

func (n *Notice) appendFields(f fields) fields {
	f = f.bytes("i", n.ID[:]).text("s", n.State.String())
	if n.Result != nil {
		f = f.record("r", n.Result)
	}
	if n.Exception != nil {
		f = f.record("e", n.Exception)
	}
	return f
}

func (n *Notice) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "i":
		return readID(b, &n.ID)
	case "s":
		state, rest, err := msgp.ReadStringZC(b)
		if err == nil {
			err = n.State.UnmarshalText(state)
		}
		return rest, err
	case "r":
		return readRef(b, &n.Result)
	case "e":
		return readRef(b, &n.Exception)
	}
	return msgp.Skip(b)
}
