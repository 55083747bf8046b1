// Package rest serves batches over HTTP as the head of b7s does, and with what
// users of large batches need beside it: progress, paged and streamed results,
// events, cancel, retry and delete. With a futures client it serves the futures
// API of package httpapi too.
//
// Requests and answers are JSON; /openapi.json describes them, and /docs shows
// that to people. The paths below /api/v1/functions are those of b7s: their
// bodies are read whatever their Content-Type, and fields that are unknown are
// passed over. An error is an RFC 9457 problem. On the paths of b7s its "code"
// is that of b7s, such as "404", and "name" is the code that all other paths
// have; everywhere "message" says what happened.
package rest
