package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// small is how many bytes of a message a stream may hold without asking.
const small = 32 << 10

// readMessage reads up to the end of r, or to the first newline if that ends a
// message. Before it holds more than small bytes, it calls grow with how many more it is
// going to hold in all, and returns grow's error. It returns ErrTooLarge after limit bytes.
func readMessage(r io.Reader, limit int, newline bool, grow func(n int64) error) ([]byte, error) {
	const first = 4 << 10
	message := make([]byte, 0, min(first, limit+1))
	for {
		if len(message) == cap(message) {
			size := min(2*cap(message), limit+1)
			if size > small {
				if err := grow(int64(size) - small); err != nil {
					return nil, err
				}
			}
			message = append(make([]byte, 0, size), message...)
		}
		n, err := r.Read(message[len(message):cap(message)])
		read := message[len(message) : len(message)+n]
		message = message[:len(message)+n]
		if end := bytes.IndexByte(read, '\n'); newline && end >= 0 {
			message, err = message[:len(message)-n+end], io.EOF
		}
		switch {
		case len(message) > limit:
			return nil, fmt.Errorf("%w: the message has more than %d bytes", ErrTooLarge, limit)
		case errors.Is(err, io.EOF):
			return message, nil
		case err != nil:
			return nil, err
		}
	}
}
