package mongostore

import (
	"cmp"
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
)

func field(key string, value any) bson.E { return bson.E{Key: key, Value: value} }

func oneOf[T any](values ...T) bson.D { return bson.D{{Key: "$in", Value: values}} }

var absent = bson.D{{Key: "$exists", Value: false}}

// status matches documents in one of some states, and sets a single one.
func status(states ...batch.Status) bson.E {
	if len(states) == 1 {
		return field("status", int32(states[0]))
	}
	numbers := make([]int32, len(states))
	for i, state := range states {
		numbers[i] = int32(state)
	}
	return field("status", oneOf(numbers...))
}

// The parts of a change.
func set(fields ...bson.E) bson.E  { return field("$set", bson.D(fields)) }
func unset(names ...string) bson.E { return field("$unset", ascending(names...)) }
func increment(name string) bson.E { return field("$inc", ascending(name)) }

// ascending sorts by fields.
func ascending(fields ...string) bson.D {
	var order bson.D
	for _, name := range fields {
		order = append(order, field(name, int32(1)))
	}
	return order
}

// find returns the documents of a collection that match.
func find[T any](ctx context.Context, c *mongo.Collection, filter bson.D, o ...options.Lister[options.FindOptions],
) ([]T, error) {
	cursor, err := c.Find(ctx, filter, o...)
	if err != nil {
		return nil, failed(ctx, err, "read %s", c.Name())
	}
	var found []T
	if err := cursor.All(ctx, &found); err != nil {
		return nil, failed(ctx, err, "read %s", c.Name())
	}
	return found, nil
}

// findOne returns a document of a collection that matches, nil if there is none.
// what says what it is for.
func findOne[T any](ctx context.Context, c *mongo.Collection, filter bson.D, o *options.FindOneOptionsBuilder,
	what string, a ...any,
) (*T, error) {
	found := new(T)
	err := c.FindOne(ctx, filter, cmp.Or(o, options.FindOne())).Decode(found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(ctx, err, what, a...)
	}
	return found, nil
}

// update changes one document that matches, and reports whether there is one.
func update(ctx context.Context, c *mongo.Collection, filter, change bson.D, what string, a ...any) (bool, error) {
	changed, err := c.UpdateOne(ctx, filter, change)
	if err != nil {
		return false, failed(ctx, err, what, a...)
	}
	return changed.MatchedCount > 0, nil
}

// count counts the documents of a collection that match.
func count(ctx context.Context, c *mongo.Collection, filter bson.D) (int, error) {
	n, err := c.CountDocuments(ctx, filter)
	if err != nil {
		return 0, failed(ctx, err, "count %s", c.Name())
	}
	return int(n), nil
}
