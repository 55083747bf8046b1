package ferrettest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch/mongostore"
)

// checker checks documents against the schemas that a server with validators
// would be given. It is stricter: a field that the schema does not name is a
// mistake.
type checker struct {
	values, types map[string]*jsonschema.Schema

	mu       sync.Mutex
	checked  int
	problems []string
}

func newChecker(t *testing.T) *checker {
	c := &checker{values: map[string]*jsonschema.Schema{}, types: map[string]*jsonschema.Schema{}}
	for _, name := range mongostore.Collections() {
		text, err := mongostore.Schema(name)
		require.NoError(t, err)
		c.values[name] = compile(t, text, false)
		c.types[name] = compile(t, text, true)
	}
	return c
}

// compile compiles a schema for documents in extended JSON: relaxed to check
// values, canonical to check the types of numbers.
func compile(t *testing.T, text []byte, canonical bool) *jsonschema.Schema {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", translated(schema, canonical)))
	compiled, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return compiled
}

// translated is a schema of MongoDB as one of JSON.
func translated(schema any, canonical bool) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := map[string]any{}
	for key, value := range s {
		switch key {
		case "bsonType":
			var kinds []any
			if list, ok := value.([]any); ok {
				kinds = list
			} else {
				kinds = []any{value}
			}
			var any []any
			for _, kind := range kinds {
				any = append(any, ofType(kind.(string), canonical))
			}
			out["anyOf"] = any
		case "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = translated(property, canonical)
			}
			out["properties"], out["additionalProperties"] = properties, false
		case "items":
			out["items"] = translated(value, canonical)
		case "enum", "minimum", "maximum":
			if !canonical {
				out[key] = value
			}
		default:
			out[key] = value
		}
	}
	return out
}

// ofType is the schema of a type of BSON in extended JSON.
func ofType(kind string, canonical bool) map[string]any {
	wrapped := map[string]string{"date": "$date", "objectId": "$oid", "binData": "$binary"}
	if canonical {
		wrapped["int"], wrapped["long"], wrapped["double"] = "$numberInt", "$numberLong", "$numberDouble"
	}
	if key := wrapped[kind]; key != "" {
		return map[string]any{"type": "object", "required": []any{key}}
	}
	plain := map[string]string{
		"string": "string", "object": "object", "array": "array", "int": "integer", "long": "integer",
		"double": "number",
	}
	if plain[kind] == "" {
		panic("no such type: " + kind)
	}
	return map[string]any{"type": plain[kind]}
}

// check checks a document, from any goroutine.
func (c *checker) check(collection string, document bson.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(mongostore.Collections(), collection) {
		return
	}
	c.checked++
	for canonical, schema := range map[bool]*jsonschema.Schema{false: c.values[collection], true: c.types[collection]} {
		if err := validate(schema, document, canonical); err != nil && len(c.problems) < 5 {
			c.problems = append(c.problems, fmt.Sprintf("%s: %v: %.500s", collection, err, document))
		}
	}
}

func validate(schema *jsonschema.Schema, document bson.Raw, canonical bool) error {
	text, err := bson.MarshalExtJSON(document, canonical, false)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkStored checks all documents that a server has.
func (c *checker) checkStored(t *testing.T, uri string) {
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Disconnect(ctx)) }()
	for _, name := range mongostore.Collections() {
		cursor, err := client.Database(mongostore.DefaultDatabase).Collection(name).Find(ctx, bson.D{})
		require.NoError(t, err)
		for cursor.Next(ctx) {
			c.check(name, cursor.Current)
		}
		require.NoError(t, cursor.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.problems)
}

// TestCheckerFindsMistakes gives the checker documents that a server with
// validators refuses.
func TestCheckerFindsMistakes(t *testing.T) {
	t.Parallel()
	good := map[string]any{
		"_id": "b:c", "id": "b:c", "batch_id": "b", "worker": "w", "status": int32(1), "items": int32(2),
		"created_at": bson.DateTime(0), "version": int32(0),
	}
	for name, change := range map[string]func(map[string]any){
		"":        func(map[string]any) {},
		"missing": func(d map[string]any) { delete(d, "worker") },
		"status":  func(d map[string]any) { d["status"] = int32(2) },
		"long":    func(d map[string]any) { d["status"] = int64(1) },
		"text":    func(d map[string]any) { d["created_at"] = "2026-01-02" },
		"unknown": func(d map[string]any) { d["more"] = true },
		"minimum": func(d map[string]any) { d["items"] = int32(-1) },
	} {
		document := map[string]any{}
		for key, value := range good {
			document[key] = value
		}
		change(document)
		raw, err := bson.Marshal(document)
		require.NoError(t, err)
		c := newChecker(t)
		c.check("b7s-batch-chunks", raw)
		require.Equal(t, 1, c.checked)
		require.Equal(t, name == "", len(c.problems) == 0, "%s: %v", name, c.problems)
	}
}
