package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Names of a field that is written piece by piece, and of its placeholder: no text
// within JSON looks like both, since its quotes are escaped.
const (
	stdoutField  = "stdout"
	encodedField = "stdout_base64"
	placeholder  = "*"
)

// pieceBytes is how much of a text is written at a time.
const pieceBytes = 32 << 10

// writeSpliced writes v as JSON, with a text, or its base64 form, in the place of
// a field's placeholder, so that a large text is not held once more.
func writeSpliced(w io.Writer, v any, field, text string) error {
	shown, err := json.Marshal(v)
	if err != nil {
		return err
	}
	before, behind, found := bytes.Cut(shown, []byte(`"`+field+`":"`+placeholder+`"`))
	if !found {
		return fmt.Errorf("%T has no field %s", v, field)
	}
	out := &jsonWriter{w: w}
	out.bytes(before)
	out.text(`"` + field + `":"`)
	if field == encodedField && out.err == nil {
		encoder := base64.NewEncoder(base64.StdEncoding, w)
		_, out.err = io.WriteString(encoder, text)
		if err := encoder.Close(); out.err == nil {
			out.err = err
		}
	} else {
		out.escaped(text)
	}
	out.text(`"`)
	out.bytes(behind)
	return out.err
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
