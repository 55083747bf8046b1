package layout

import "github.com/tinylib/msgp/msgp"

func (l *Lane) appendFields(f fields) fields { return f.text("k", l.Kind).text("y", l.Key) }

func (l *Lane) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "k":
		return readText(b, &l.Kind)
	case "y":
		return readText(b, &l.Key)
	}
	return msgp.Skip(b)
}

func (k *LaneKind) appendFields(f fields) fields {
	f = f.int("w", int64(k.Width)).int("t", int64(k.Total)).int("r", int64(k.Rate)).int("e", int64(k.Every))
	f = f.text("b", k.Bundle).int("m", int64(k.Most)).int("y", k.Bytes).int("l", int64(k.Linger)).text("g", k.Target)
	return f.bool("a", k.Aside).bool("p", k.Paused).int("s", k.Sweep)
}

func (k *LaneKind) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "w":
		return readInt(b, &k.Width)
	case "t":
		return readInt(b, &k.Total)
	case "r":
		return readInt(b, &k.Rate)
	case "e":
		return readInt(b, &k.Every)
	case "b":
		return readText(b, &k.Bundle)
	case "m":
		return readInt(b, &k.Most)
	case "y":
		return readInt(b, &k.Bytes)
	case "l":
		return readInt(b, &k.Linger)
	case "g":
		return readText(b, &k.Target)
	case "a":
		return readBool(b, &k.Aside)
	case "p":
		return readBool(b, &k.Paused)
	case "s":
		return readInt(b, &k.Sweep)
	}
	return msgp.Skip(b)
}

func (r *LaneRecord) appendFields(f fields) fields {
	f = f.int("o", int64(r.Open)).bool("l", r.Lined).bool("p", r.Paused)
	return f.int("d", r.Due).int("s", r.Spent).bool("t", r.Turn).int("c", int64(r.Called))
}

func (r *LaneRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "o":
		return readInt(b, &r.Open)
	case "l":
		return readBool(b, &r.Lined)
	case "p":
		return readBool(b, &r.Paused)
	case "d":
		return readInt(b, &r.Due)
	case "s":
		return readInt(b, &r.Spent)
	case "t":
		return readBool(b, &r.Turn)
	case "c":
		return readInt(b, &r.Called)
	}
	return msgp.Skip(b)
}

func (t *LaneTotal) appendFields(f fields) fields {
	return f.int("o", int64(t.Open)).bool("l", t.Lined)
}

func (t *LaneTotal) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "o":
		return readInt(b, &t.Open)
	case "l":
		return readBool(b, &t.Lined)
	}
	return msgp.Skip(b)
}

func (r *LineRecord) appendFields(f fields) fields {
	return f.int("o", r.Order).int("i", r.Incarnation)
}

func (r *LineRecord) readField(name, b []byte) ([]byte, error) {
	switch string(name) {
	case "o":
		return readInt(b, &r.Order)
	case "i":
		return readInt(b, &r.Incarnation)
	}
	return msgp.Skip(b)
}

func (e *LineEntry) appendFields(f fields) fields { return f.bytes("i", e.ID[:]) }

func (e *LineEntry) readField(name, b []byte) ([]byte, error) {
	if string(name) == "i" {
		return readID(b, &e.ID)
	}
	return msgp.Skip(b)
}
