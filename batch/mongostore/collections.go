package mongostore

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Names of the collections.
const (
	batchesName = "b7s-batches"
	chunksName  = "b7s-batch-chunks"
	itemsName   = "b7s-batch-work-items"
	outputsName = "b7s-batch-outputs"
)

//go:embed schemas/*.json
var schemas embed.FS

// Collections are the names of the collections that a store creates.
func Collections() []string { return []string{batchesName, chunksName, itemsName, outputsName} }

// Schema is the JSON schema of a collection's documents, as a validator of
// MongoDB has it: with bsonType instead of type.
func Schema(collection string) ([]byte, error) {
	schema, err := schemas.ReadFile("schemas/" + collection + ".json")
	if err != nil {
		return nil, fmt.Errorf("no schema of collection %s", collection)
	}
	return schema, nil
}

// createCollections creates the missing collections.
func (s *Store) createCollections(ctx context.Context) error {
	var without []string
	for _, name := range Collections() {
		schema, err := Schema(name)
		if err != nil {
			return err
		}
		var validator bson.D
		if err := bson.UnmarshalExtJSON(schema, false, &validator); err != nil {
			return fmt.Errorf("schema of %s: %w", name, err)
		}
		validated, err := s.createCollection(ctx, name, validator)
		if err != nil {
			return err
		}
		if !validated {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		s.log.Warn("the server does not check documents against the schemas of these collections: it has no validators, "+
			"or the collections were created without them", "collections", without, "server", s.where)
	}
	return nil
}

// createIndexes creates the missing indexes of a collection. preparing bounds
// listing them; creating one takes time in proportion to the documents.
func (s *Store) createIndexes(ctx, preparing context.Context, name string) error {
	view := s.database.Collection(name).Indexes()
	cursor, err := view.List(preparing)
	var existing []foundIndex
	if err == nil {
		err = cursor.All(preparing, &existing)
	}
	if err != nil {
		return fmt.Errorf("list the indexes of %s: %w", name, err)
	}
	var missing []mongo.IndexModel
	for _, index := range indexes(name) {
		is, difference := index.among(existing)
		if difference != "" {
			return fmt.Errorf("%w: %s of %s %s: drop that index, or use another database", ErrForeignSchema, name, s.where,
				difference)
		}
		if !is {
			missing = append(missing, index.IndexModel)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	indexing, cancel := context.WithTimeout(ctx, indexTimeout) // the driver bounds what has no deadline
	defer cancel()
	if _, err = view.CreateMany(indexing, missing); err == nil {
		return nil
	}
	if hasCode(err, codeIndexOptionsConflict, codeIndexKeyConflict, codeDuplicateKey) {
		return fmt.Errorf("%w: %s of %s: %w: use another database", ErrForeignSchema, name, s.where, err)
	}
	return fmt.Errorf("create the indexes of %s: %w", name, err)
}

// foundIndex is how a server lists an index.
type foundIndex struct {
	Name    string   `bson:"name"`
	Keys    bson.D   `bson:"key"`
	Unique  any      `bson:"unique"`
	Sparse  any      `bson:"sparse"`
	Partial bson.Raw `bson:"partialFilterExpression"`
	Expires any      `bson:"expireAfterSeconds"`
}

// options says in words what an index has beside its keys.
func (f *foundIndex) options() string {
	options := uniqueness(isSet(f.Unique))
	if isSet(f.Sparse) {
		options += ", sparse"
	}
	if len(f.Partial) > 0 {
		options += ", only of documents with " + f.Partial.String()
	}
	if f.Expires != nil {
		options += fmt.Sprintf(", with documents that expire after %v s", f.Expires)
	}
	return options
}

func uniqueness(unique bool) string {
	if unique {
		return "unique"
	}
	return "not unique"
}

// isSet reports whether an option is on, which servers have as a boolean or a number.
func isSet(option any) bool { return option != nil && !reflect.ValueOf(option).IsZero() }

// among reports whether an index is one of those that exist, or how those of the same keys differ from it.
func (i *index) among(existing []foundIndex) (is bool, difference string) {
	for n := range existing {
		other := &existing[n]
		if !i.hasKeysOf(other) {
			continue
		}
		there, needed := other.options(), uniqueness(i.unique)
		if there == needed {
			return true, ""
		}
		difference = fmt.Sprintf("has an index %s of %s that is %s, and has to be %s", other.Name,
			strings.Join(i.fields, ", "), there, needed)
	}
	return false, difference
}

// hasKeysOf reports whether an index is of the same fields, in the same order and directions. Others lie beside it.
func (i *index) hasKeysOf(other *foundIndex) bool {
	return slices.EqualFunc(i.fields, other.Keys, func(field string, key bson.E) bool {
		up := reflect.ValueOf(key.Value)
		return key.Key == field && (up.CanInt() && up.Int() > 0 || up.CanFloat() && up.Float() > 0)
	})
}

// createCollection creates a collection with a validator, or without one if the
// server has none. It reports whether the server checks its documents.
func (s *Store) createCollection(ctx context.Context, name string, validator bson.D) (validated bool, err error) {
	err = s.database.CreateCollection(ctx, name,
		options.CreateCollection().SetValidator(bson.D{{Key: "$jsonSchema", Value: validator}}))
	if hasCode(err, codeNotImplemented, codeCommandNotFound) {
		err = s.database.CreateCollection(ctx, name)
	}
	if hasCode(err, codeNamespaceExists) || err == nil {
		return s.checkOptions(ctx, name, validator)
	}
	return false, fmt.Errorf("create collection %s: %w", name, err)
}

// collection is how a server lists one.
type collection struct {
	Type    string `bson:"type"`
	Options struct {
		Capped     bool `bson:"capped"`
		TimeSeries any  `bson:"timeseries"`
		Validator  struct {
			Schema bson.D `bson:"$jsonSchema"`
		} `bson:"validator"`
	} `bson:"options"`
}

// checkOptions returns ErrForeignSchema for a collection that is not as this
// store makes it. One without a validator may be from a server that has none.
func (s *Store) checkOptions(ctx context.Context, name string, validator bson.D) (validated bool, err error) {
	cursor, err := s.database.ListCollections(ctx, bson.D{{Key: "name", Value: name}})
	if err != nil {
		return false, fmt.Errorf("list collection %s: %w", name, err)
	}
	var found []collection
	if err := cursor.All(ctx, &found); err != nil {
		return false, fmt.Errorf("list collection %s: %w", name, err)
	}
	if len(found) == 0 {
		return false, nil // dropped since
	}
	difference, err := foreign(&found[0], validator)
	if err != nil {
		return false, fmt.Errorf("options of collection %s: %w", name, err)
	}
	if difference != "" {
		return false, fmt.Errorf("%w: %s of %s %s: use another database, or rename the collection", ErrForeignSchema, name,
			s.where, difference)
	}
	return len(found[0].Options.Validator.Schema) > 0, nil
}

// foreign says how a collection differs from this store's, empty if it does
// not. The order of fields and the width of numbers do not count, because servers
// may return them differently.
func foreign(c *collection, validator bson.D) (string, error) {
	switch {
	case c.Type != "" && c.Type != "collection" || c.Options.TimeSeries != nil:
		return fmt.Sprintf("is a %s", c.Type), nil
	case c.Options.Capped:
		return "is capped", nil
	case len(c.Options.Validator.Schema) == 0:
		return "", nil
	}
	theirs, err := plain(c.Options.Validator.Schema)
	if err != nil {
		return "", err
	}
	ours, err := plain(validator)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(ours, theirs) {
		return "has a validator with another schema", nil
	}
	return "", nil
}

// plain is a document in JSON.
func plain(document bson.D) (value any, err error) {
	text, err := bson.MarshalExtJSON(document, false, false)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &value)
	return value, err
}

// index is one of a collection.
type index struct {
	mongo.IndexModel
	fields []string
	unique bool
}

func newIndex(unique bool, fields ...string) index {
	return index{
		IndexModel: mongo.IndexModel{Keys: ascending(fields...), Options: options.Index().SetUnique(unique)},
		fields:     fields, unique: unique,
	}
}

// indexes are those of a collection, besides that of keys.
func indexes(collection string) []index {
	switch collection {
	case batchesName:
		return []index{newIndex(false, "created_at", "id"), newIndex(false, "status", "created_at", "id")}
	case chunksName:
		return []index{newIndex(false, "batch_id", "status")}
	case itemsName:
		return []index{newIndex(true, "id"), newIndex(false, "batch_id", "status", "index"),
			newIndex(false, "batch_id", "status", "due_at", "index"),
			newIndex(false, "batch_id", "chunk_id", "status", "index")}
	default:
		return []index{newIndex(false, "batch_id")}
	}
}
