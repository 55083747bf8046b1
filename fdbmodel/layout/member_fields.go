package layout

import "github.com/tinylib/msgp/msgp"

func (r *Resources) appendFields(f fields) fields {
	return f.int("s", int64(r.Slots)).int("c", r.CPU).int("r", r.RAM).int("g", r.GPU)
}

func (r *Resources) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "s":
		return readInt(b, &r.Slots)
	case "c":
		return readInt(b, &r.CPU)
	case "r":
		return readInt(b, &r.RAM)
	case "g":
		return readInt(b, &r.GPU)
	}
	return msgp.Skip(b)
}

func (r *IdleRecord) appendFields(f fields) fields {
	return r.Resources.appendFields(f).texts("f", r.Functions).pairs("l", r.Labels).bool("x", r.NoRoom)
}

func (r *IdleRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "f":
		return readTexts(b, &r.Functions)
	case "l":
		return readPairs(b, &r.Labels)
	case "x":
		return readBool(b, &r.NoRoom)
	}
	return r.Resources.readField(name, b)
}

func (h *Heartbeat) appendFields(f fields) fields {
	return f.int("n", h.Count).record("f", &h.Free).int("r", int64(h.Running)).int("t", h.At).
		int("w", int64(h.Awaiting)).texts("u", h.Full).int("o", h.Stored).int("b", h.Room).bool("x", h.NoRoom).
		bool("d", h.Draining)
}

func (h *Heartbeat) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "n":
		return readInt(b, &h.Count)
	case "f":
		return readRecord(b, &h.Free)
	case "r":
		return readInt(b, &h.Running)
	case "w":
		return readInt(b, &h.Awaiting)
	case "u":
		return readTexts(b, &h.Full)
	case "o":
		return readInt(b, &h.Stored)
	case "b":
		return readInt(b, &h.Room)
	case "x":
		return readBool(b, &h.NoRoom)
	case "d":
		return readBool(b, &h.Draining)
	case "t":
		return readInt(b, &h.At)
	}
	return msgp.Skip(b)
}

func (c *ClaimBatch) appendFields(f fields) fields { return f.bytes("i", c.IDs) }

func (c *ClaimBatch) readField(name, b []byte) ([]byte, error) {
	if string(name) == "i" {
		return readIDs(b, &c.IDs)
	}
	return msgp.Skip(b)
}

func (d *DoneEntry) appendFields(f fields) fields { return f.int("t", d.At).bytes("i", d.IDs) }

func (d *DoneEntry) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "t":
		return readInt(b, &d.At)
	case "i":
		return readIDs(b, &d.IDs)
	}
	return msgp.Skip(b)
}
