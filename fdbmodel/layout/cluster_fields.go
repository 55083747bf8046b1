package layout

import "github.com/tinylib/msgp/msgp"

func (c *Config) appendFields(f fields) fields {
	f = f.int("f", int64(c.Format)).int("s", int64(c.Shards)).int("h", int64(c.Heartbeat))
	f = f.int("d", int64(c.DeadAfter)).int("r", int64(c.Retention)).int("i", int64(c.InfeasibleAfter))
	f = f.int("n", c.Incarnation)
	if c.Policy != (Policy{}) {
		f = f.record("p", &c.Policy)
	}
	return f
}

func (c *Config) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "f":
		return readInt(b, &c.Format)
	case "s":
		return readInt(b, &c.Shards)
	case "h":
		return readInt(b, &c.Heartbeat)
	case "d":
		return readInt(b, &c.DeadAfter)
	case "r":
		return readInt(b, &c.Retention)
	case "i":
		return readInt(b, &c.InfeasibleAfter)
	case "n":
		return readInt(b, &c.Incarnation)
	case "p":
		return readRecord(b, &c.Policy)
	}
	return msgp.Skip(b)
}

func (w *WorkerInfo) appendFields(f fields) fields {
	f = f.text("a", w.Address).text("n", w.Name).texts("q", w.Queues).texts("f", w.Functions)
	f = f.record("c", &w.Capacity).int("t", w.StartedAt).text("o", w.Opening)
	f = f.int("p", int64(w.Process)).text("v", w.Version).text("x", w.Connection).pairs("l", w.Labels)
	return f.text("ob", w.Objects).text("se", string(w.Secret)).bool("le", w.Leaving)
}

func (w *WorkerInfo) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "a":
		return readText(b, &w.Address)
	case "n":
		return readText(b, &w.Name)
	case "q":
		return readTexts(b, &w.Queues)
	case "f":
		return readTexts(b, &w.Functions)
	case "c":
		return readRecord(b, &w.Capacity)
	case "t":
		return readInt(b, &w.StartedAt)
	case "o":
		return readText(b, &w.Opening)
	case "p":
		return readInt(b, &w.Process)
	case "v":
		return readText(b, &w.Version)
	case "x":
		return readText(b, &w.Connection)
	case "l":
		return readPairs(b, &w.Labels)
	case "ob":
		return readText(b, &w.Objects)
	case "se":
		return readText(b, &w.Secret)
	case "le":
		return readBool(b, &w.Leaving)
	}
	return msgp.Skip(b)
}

func (s *SessionRecord) appendFields(f fields) fields {
	return f.int("n", s.Count).int("t", s.At).text("o", s.Opening)
}

func (s *SessionRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "n":
		return readInt(b, &s.Count)
	case "t":
		return readInt(b, &s.At)
	case "o":
		return readText(b, &s.Opening)
	}
	return msgp.Skip(b)
}

func (j *JanitorRecord) appendFields(f fields) fields {
	return f.text("w", string(j.Worker)).int("n", j.Count)
}

func (j *JanitorRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readText(b, &j.Worker)
	case "n":
		return readInt(b, &j.Count)
	}
	return msgp.Skip(b)
}

func (r *IncomingRecord) appendFields(f fields) fields {
	return f.text("w", r.Writer).int("n", r.Batch).int("t", r.At)
}

func (r *IncomingRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readText(b, &r.Writer)
	case "n":
		return readInt(b, &r.Batch)
	case "t":
		return readInt(b, &r.At)
	}
	return msgp.Skip(b)
}

func (m *Module) appendFields(f fields) fields {
	return f.int("s", m.Size).int("t", m.StoredAt).int("r", m.Retired)
}

func (m *Module) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "s":
		return readInt(b, &m.Size)
	case "t":
		return readInt(b, &m.StoredAt)
	case "r":
		return readInt(b, &m.Retired)
	}
	return msgp.Skip(b)
}

func (a *AliasRecord) appendFields(f fields) fields { return f.text("c", a.CID).int("t", a.At) }

func (a *AliasRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "c":
		return readText(b, &a.CID)
	case "t":
		return readInt(b, &a.At)
	}
	return msgp.Skip(b)
}

func (r *BatchRecord) appendFields(f fields) fields {
	f = f.bytes("t", r.Template).text("q", r.Queue).int("m", int64(r.MaxAttempts)).int("n", int64(r.Items))
	f = f.int("s", int64(r.Status)).text("r", r.Reason).bool("d", r.Made).text("k", r.Maker)
	return f.bytes("h", r.Digest).int("c", r.CreatedAt).int("f", r.FinishedAt).int("x", r.CancelledAt)
}

func (r *BatchRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "t":
		return readBytes(b, &r.Template)
	case "q":
		return readText(b, &r.Queue)
	case "m":
		return readInt(b, &r.MaxAttempts)
	case "n":
		return readInt(b, &r.Items)
	case "s":
		return readInt(b, &r.Status)
	case "r":
		return readText(b, &r.Reason)
	case "d":
		return readBool(b, &r.Made)
	case "k":
		return readText(b, &r.Maker)
	case "h":
		return readBytes(b, &r.Digest)
	case "c":
		return readInt(b, &r.CreatedAt)
	case "f":
		return readInt(b, &r.FinishedAt)
	case "x":
		return readInt(b, &r.CancelledAt)
	}
	return msgp.Skip(b)
}

func (c *BatchChunk) appendFields(f fields) fields {
	f = f.text("w", string(c.Worker)).int("n", int64(c.Items)).int("s", int64(c.Status)).int("c", c.CreatedAt)
	return f.text("p", c.Peer).int("f", c.FinishedAt).int("l", int64(c.Lost)).int("v", int64(c.Moved))
}

func (c *BatchChunk) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readText(b, &c.Worker)
	case "n":
		return readInt(b, &c.Items)
	case "s":
		return readInt(b, &c.Status)
	case "c":
		return readInt(b, &c.CreatedAt)
	case "p":
		return readText(b, &c.Peer)
	case "f":
		return readInt(b, &c.FinishedAt)
	case "l":
		return readInt(b, &c.Lost)
	case "v":
		return readInt(b, &c.Moved)
	}
	return msgp.Skip(b)
}
