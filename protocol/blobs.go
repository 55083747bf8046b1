package protocol

import (
	"encoding/json"
	"fmt"
)

// MaxLine is the most bytes of the line that opens a blob stream, or answers it.
const MaxLine = 512

// BlobRequest opens a blob stream: one line of JSON. It is no Message.
type BlobRequest struct {
	// ID is the content id of the blob.
	ID string `json:"id"`
	// Offset is the first byte that is wanted, to go on after a cut.
	Offset int64 `json:"offset,omitempty"`
}

// BlobResponse is the answer to BlobRequest: one line of JSON, then the bytes
// from the offset on if Code is CodeOK.
type BlobResponse struct {
	// Code is CodeOK, CodeNotFound if the peer doesn't have the blob, CodeUnavailable if
	// it is to be asked for later, or CodeInvalid for an invalid request.
	Code Code `json:"code"`
	// Size is that of the whole blob, in bytes.
	Size int64 `json:"size"`
	// Message describes the error.
	Message string `json:"message,omitempty"`
}

// Line returns the request as a line with its end. It returns ErrInvalid or ErrLimit
// for one that DecodeBlobRequest refuses.
func (r *BlobRequest) Line() ([]byte, error) { return line(r, r.check) }

// Line returns the answer as a line with its end. It returns ErrInvalid or ErrLimit
// for one that DecodeBlobResponse refuses.
func (r *BlobResponse) Line() ([]byte, error) { return line(r, r.check) }

// DecodeBlobRequest reads a line of at most MaxLine bytes. It returns
// ErrMalformed, ErrLimit or ErrInvalid.
func DecodeBlobRequest(data []byte) (BlobRequest, error) {
	var r BlobRequest
	err := decodeLine(data, &r, r.check)
	return r, err
}

// DecodeBlobResponse reads a line of at most MaxLine bytes. It returns
// ErrMalformed, ErrLimit or ErrInvalid.
func DecodeBlobResponse(data []byte) (BlobResponse, error) {
	var r BlobResponse
	err := decodeLine(data, &r, r.check)
	return r, err
}

func (r *BlobRequest) check(c *checker) {
	c.blob("id", r.ID)
	c.natural("offset", r.Offset)
}

func (r *BlobResponse) check(c *checker) {
	c.code("code", r.Code)
	c.natural("size", r.Size)
	c.text("message", r.Message, maxLineText)
}

// maxLineText is the most bytes of a message in a line. JSON may take six for one.
const maxLineText = 64

func line(v any, check func(*checker)) ([]byte, error) {
	c := &checker{name: "blob"}
	check(c)
	if c.err != nil {
		return nil, c.err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(data) >= MaxLine {
		return nil, fmt.Errorf("%w: a line of %d bytes: at most %d", ErrLimit, len(data)+1, MaxLine)
	}
	return append(data, '\n'), nil
}

func decodeLine(data []byte, v any, check func(*checker)) error {
	if len(data) > MaxLine {
		return fmt.Errorf("%w: a line of %d bytes: at most %d", ErrLimit, len(data), MaxLine)
	}
	if err := unmarshalJSON(data, v); err != nil {
		return err
	}
	c := &checker{name: "blob"}
	check(c)
	return c.err
}
