package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Names of the fields that are written piece by piece, and their placeholder: no text
// within JSON looks like both, since its quotes are escaped.
const (
	stdoutField  = "stdout"
	encodedField = "stdout_base64"
	placeholder  = "*"
)

// splice is a text, or its base64 form, that takes the place of a field's placeholder.
type splice struct{ field, text string }

// pieceBytes is how much of a text is written at a time.
const pieceBytes = 32 << 10

// writeSpliced writes v as JSON, with splices in the order of their fields, so that a
// large text is not held once more.
func writeSpliced(w io.Writer, v any, splices ...splice) error {
	behind, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out := &jsonWriter{w: w}
	for _, s := range splices {
		before, rest, found := bytes.Cut(behind, []byte(`"`+s.field+`":"`+placeholder+`"`))
		if !found {
			return fmt.Errorf("%T has no field %s", v, s.field)
		}
		out.bytes(before)
		out.splice(s)
		behind = rest
	}
	out.bytes(behind)
	return out.err
}

func (j *jsonWriter) splice(s splice) {
	j.text(`"` + s.field + `":"`)
	if s.field == encodedField && j.err == nil {
		encoder := base64.NewEncoder(base64.StdEncoding, j.w)
		_, j.err = io.WriteString(encoder, s.text)
		if err := encoder.Close(); j.err == nil {
			j.err = err
		}
	} else {
		j.escaped(s.text)
	}
	j.text(`"`)
}

// jsonWriter keeps the first error.
type jsonWriter struct {
	w   io.Writer
	err error
}

func (j *jsonWriter) bytes(b []byte) {
	if j.err == nil {
		_, j.err = j.w.Write(b)
	}
}

func (j *jsonWriter) text(s string) { j.bytes([]byte(s)) }

func (j *jsonWriter) value(s string) {
	j.text(`"`)
	j.escaped(s)
	j.text(`"`)
}

// escaped writes the inside of a JSON text, piece by piece.
func (j *jsonWriter) escaped(s string) {
	for len(s) > 0 && j.err == nil {
		n := min(len(s), pieceBytes)
		for back := 0; n < len(s) && back < utf8.UTFMax-1 && !utf8.RuneStart(s[n]); back++ {
			n--
		}
		piece, err := json.Marshal(s[:n])
		if err != nil {
			j.err = err
			return
		}
		j.bytes(piece[1 : len(piece)-1])
		s = s[n:]
	}
}
