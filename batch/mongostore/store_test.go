package mongostore

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTextKeepsAnyBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type document struct {
			Text text `bson:"text"`
		}
		want := document{text(rapid.OneOf(rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text"))}
		raw, err := bson.Marshal(want)
		require.NoError(t, err)
		var got document
		require.NoError(t, bson.Unmarshal(raw, &got))
		require.Equal(t, want, got)
	})
	for _, wrong := range []any{int32(1), bson.A{}, true} {
		raw, err := bson.Marshal(bson.D{{Key: "text", Value: wrong}})
		require.NoError(t, err)
		var got struct {
			Text text `bson:"text"`
		}
		require.ErrorContains(t, bson.Unmarshal(raw, &got), "want a string")
	}
}

// FuzzTextDecoder reads text as a server may send it.
func FuzzTextDecoder(f *testing.F) {
	f.Add(byte(bson.TypeString), []byte("\x02\x00\x00\x00a\x00"))
	f.Add(byte(bson.TypeBinary), []byte("\x01\x00\x00\x00\x00a"))
	f.Add(byte(bson.TypeNull), []byte{})
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		var got text
		if got.UnmarshalBSONValue(kind, data) != nil {
			return
		}
		require.LessOrEqual(t, len(got), len(data))
	})
}

func TestItemsThatRunTheSameHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := &batch.Batch{ID: "b", Template: batch.Template{FunctionID: "myfunc", Method: "echo.wasm"}}
	var ids []string
	for d := range itemDocuments(b, [][]string{nil, {"a b"}, {}, {"a", "b"}, {"c"}}, time.Now()) {
		ids = append(ids, d.ID)
		item := d.item()
		require.Equal(t, batch.ItemID(&b.Template, item.Arguments), item.ID)
	}
	same := "b/" + batch.ItemID(&b.Template, []string{"a b"})
	require.Equal(t, []string{
		"b/1138b0725982d052a0c247eeb46ac1e4", same, "b/1138b0725982d052a0c247eeb46ac1e4#2", same + "#2",
		"b/" + batch.ItemID(&b.Template, []string{"c"}),
	}, ids)
}

func TestSchemasNameTheFieldsOfDocuments(t *testing.T) {
	t.Parallel()
	require.Len(t, Collections(), 4)
	for _, name := range Collections() {
		schema, err := Schema(name)
		require.NoError(t, err)
		var parsed bson.D
		require.NoError(t, bson.UnmarshalExtJSON(schema, false, &parsed))
		require.Contains(t, string(schema), `"id"`)
	}
	_, err := Schema("another")
	require.Error(t, err)
}

// TestCollectionsAreThoseOfB7s: an existing database is found again.
func TestCollectionsAreThoseOfB7s(t *testing.T) {
	t.Parallel()
	require.Subset(t, Collections(), []string{"b7s-batches", "b7s-batch-chunks", "b7s-batch-work-items"})
}

func TestForeignCollections(t *testing.T) {
	t.Parallel()
	ours := bson.D{{Key: "bsonType", Value: "object"}, {Key: "required", Value: bson.A{"id"}}, {Key: "n", Value: int32(1)}}
	with := func(change func(c *collection)) *collection {
		c := &collection{Type: "collection"}
		c.Options.Validator.Schema = ours
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		found *collection
		says  string
	}{
		"same": {with(func(*collection) {}), ""},
		"other order, other numbers": {with(func(c *collection) {
			c.Options.Validator.Schema = bson.D{ours[1], {Key: "n", Value: int64(1)}, ours[0]}
		}), ""},
		"no validator": {with(func(c *collection) { c.Options.Validator.Schema = nil }), ""},
		"no type":      {with(func(c *collection) { c.Type = "" }), ""},
		"other schema": {with(func(c *collection) {
			c.Options.Validator.Schema = bson.D{{Key: "required", Value: bson.A{"request_id"}}}
		}), "another schema"},
		"capped": {with(func(c *collection) { c.Options.Capped = true }), "capped"},
		"view":   {with(func(c *collection) { c.Type = "view" }), "view"},
	} {
		difference, err := foreign(c.found, ours)
		require.NoError(t, err, name)
		require.Equal(t, c.says == "", difference == "", name)
		require.Contains(t, difference, c.says, name)
	}
}

// TestForeignAsListed reads what a server lists.
func TestForeignAsListed(t *testing.T) {
	t.Parallel()
	schema, err := Schema(itemsName)
	require.NoError(t, err)
	var ours bson.D
	require.NoError(t, bson.UnmarshalExtJSON(schema, false, &ours))
	listed := func(schema bson.D) *collection {
		raw, err := bson.Marshal(bson.D{
			{Key: "name", Value: itemsName}, {Key: "type", Value: "collection"},
			{Key: "options", Value: bson.D{{Key: "validator", Value: bson.D{{Key: "$jsonSchema", Value: schema}}}}},
			{Key: "info", Value: bson.D{{Key: "readOnly", Value: false}}},
		})
		require.NoError(t, err)
		found := &collection{}
		require.NoError(t, bson.Unmarshal(raw, found))
		require.NotEmpty(t, found.Options.Validator.Schema)
		return found
	}
	difference, err := foreign(listed(ours), ours)
	require.NoError(t, err)
	require.Empty(t, difference)
	difference, err = foreign(listed(ours[1:]), ours)
	require.NoError(t, err)
	require.Contains(t, difference, "another schema")
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	began := time.Now()
	_, err = Open(t.Context(), Options{URI: "mongodb://me:hunter2@" + address + "/?connectTimeoutMS=200"})
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, address)
	require.NotContains(t, err.Error(), "hunter2")
	require.Less(t, time.Since(began), 4*openTimeout)

	for _, uri := range []string{"", "postgres://me:hunter2@localhost/", "mongodb://me:hunter2@"} {
		_, err = Open(t.Context(), Options{URI: uri})
		require.ErrorIs(t, err, ErrBadURI, uri)
		require.NotContains(t, err.Error(), "hunter2", uri)
	}
}

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"mongodb://localhost:27017/":                          "mongodb://localhost:27017",
		"mongodb://me:secret@a:1,b:2/db?authSource=admin":     "mongodb://a:1,b:2",
		"mongodb+srv://me:secret@cluster.example.com/?w=1":    "mongodb+srv://cluster.example.com",
		"mongodb://me:sec%ret@cluster.example.com:27017/?w=1": "mongodb://cluster.example.com:27017",
		"mongodb://%zz": "mongodb://…",
		"mongodb://user:p@ss@host.example.com/?password=other": "mongodb://host.example.com",
	} {
		require.Equal(t, want, withoutSecrets(uri), uri)
	}
}

// FuzzDocuments reads documents as a server may send them: any content is read or
// refused.
func FuzzDocuments(f *testing.F) {
	b := &batch.Batch{ID: "b", MaxAttempts: 2, CreatedAt: time.Unix(1, 0), Template: batch.Template{
		FunctionID: "f", Method: "m",
		Config: batch.Config{Stdin: "\xff", Environment: []batch.EnvVar{{Name: "A", Value: "b"}}},
	}}
	seeds := []any{
		newBatchDocument(b, 2), &chunkDocument{Key: "b:c", ID: "b:c", Batch: "b", Worker: "w", Items: 1},
		&outputDocument{Key: "o", ID: "o", Batch: "b", Data: []byte("data")}, bson.D{{Key: "arguments", Value: bson.A{nil}}},
		bson.D{{Key: "type", Value: "view"}, {Key: "options", Value: bson.D{{Key: "validator", Value: bson.D{}}}}},
		bson.D{{Key: "id", Value: "#"}, {Key: "chunk_id", Value: ":"}, {Key: "result", Value: nil}},
	}
	for d := range itemDocuments(b, [][]string{{"a", "\xff"}, nil}, time.Unix(1, 0)) {
		d.Result = &resultDocument{Stdout: "out", ExitCode: 3}
		seeds = append(seeds, d)
	}
	for _, seed := range seeds {
		raw, err := bson.Marshal(seed)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var read batchDocument
		if bson.Unmarshal(raw, &read) == nil {
			again, err := bson.Marshal(newBatchDocument(new(read.batch()), int(read.Items)))
			require.NoError(t, err)
			var same batchDocument
			require.NoError(t, bson.Unmarshal(again, &same))
			require.Equal(t, read.Function, same.Function)
		}
		var chunk chunkDocument
		if bson.Unmarshal(raw, &chunk) == nil {
			require.NotContains(t, chunk.chunk().ID, ":")
		}
		var item itemDocument
		if bson.Unmarshal(raw, &item) == nil {
			require.Len(t, item.item().Arguments, len(item.Arguments))
		}
		var listed collection
		if bson.Unmarshal(raw, &listed) == nil {
			_, err := foreign(&listed, bson.D{})
			require.NoError(t, err)
		}
		for _, into := range []any{&outputDocument{}, &indexDocument{}, &witnessDocument{}} {
			_ = bson.Unmarshal(raw, into) // it is read or refused
		}
	})
}

// FuzzWithoutSecrets looks for the password of any URI in what is shown of it.
func FuzzWithoutSecrets(f *testing.F) {
	for _, uri := range []string{
		"mongodb://me:%s@a:1,b:2/db?authSource=admin", "mongodb+srv://me:%s@c/?w=1", "mongodb://%%zz:%s@h", "%s@", "://:%s@/",
	} {
		f.Add(uri[:strings.Index(uri, "%s")], uri[strings.Index(uri, "%s")+2:])
	}
	f.Fuzz(func(t *testing.T, before, behind string) {
		const secret = "hunter2secret"
		head, tail := "mongodb://"+before+":"+secret+"@", behind
		if strings.ContainsAny(before, "/?#@") || strings.Contains(behind, secret) {
			t.Skip() // the password is not where one is
		}
		require.NotContains(t, withoutSecrets(head+tail), secret)
		_, err := Open(t.Context(), Options{URI: "postgres" + head + tail})
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
	})
}

// TestAServerThatStopsAnsweringIsUnreachable has a call of Open fail that was not the first, and has other times.
func TestAServerThatStopsAnsweringIsUnreachable(t *testing.T) {
	t.Parallel()
	err := (&Store{where: "mongodb://host"}).refused(context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrUnreachable)
	require.NotContains(t, err.Error(), "within")
}

// TestIndexesThatExistAreCompared has indexes as servers list them, beside ours or in place of it.
func TestIndexesThatExistAreCompared(t *testing.T) {
	t.Parallel()
	plain, unique := newIndex(false, "batch_id", "status"), newIndex(true, "batch_id", "status")
	for _, c := range []struct {
		index  index
		others []string
		is     bool
		says   string
	}{
		{plain, nil, false, ""},
		{plain, []string{`{"key": {"_id": 1}}`, `{"key": {"batch_id": 1, "status": 1}}`}, true, ""},
		{plain, []string{`{"key": {"batch_id": 1.0, "status": {"$numberLong": "1"}}, "unique": false, "sparse": 0}`},
			true, ""},
		{unique, []string{`{"key": {"batch_id": 1, "status": 1}, "unique": true}`}, true, ""},
		// Others lie beside ours.
		{plain, []string{`{"key": {"batch_id": 1}}`, `{"key": {"status": 1, "batch_id": 1}}`}, false, ""},
		{plain, []string{`{"key": {"batch_id": 1, "status": -1}}`, `{"key": {"batch_id": -1, "status": -1}}`}, false, ""},
		{plain, []string{`{"key": {"batch_id": 1, "status": "text"}}`}, false, ""},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1, "index": 1}}`}, false, ""},
		// These are in its place.
		{unique, []string{`{"key": {"batch_id": 1, "status": 1}}`}, false,
			"index a of batch_id, status that is not unique, and has to be unique"},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1}, "unique": true}`}, false,
			"is unique, and has to be not unique"},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1}, "sparse": true}`}, false, "is not unique, sparse, and"},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1}, "partialFilterExpression": {"status": 1}}`}, false,
			`only of documents with {"status"`},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1}, "expireAfterSeconds": 0}`}, false, "expire after 0 s"},
		{plain, []string{`{"key": {"batch_id": 1, "status": 1}, "sparse": true}`,
			`{"key": {"batch_id": 1, "status": 1}}`}, true, ""},
	} {
		var existing []foundIndex
		for _, text := range c.others {
			found := foundIndex{Name: "a"}
			require.NoError(t, bson.UnmarshalExtJSON([]byte(text), false, &found))
			existing = append(existing, found)
		}
		is, difference := c.index.among(existing)
		require.Equal(t, c.is, is, c.others)
		require.Equal(t, c.says == "", difference == "", "%v: %s", c.others, difference)
		require.Contains(t, difference, c.says)
	}
}
