package ferrettest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestPlannerAnswersAsTheServer asks for the same with and without the planner,
// which the server alone does not have.
func TestPlannerAnswersAsTheServer(t *testing.T) {
	t.Parallel()
	const documents, rounds = 12, 60
	p := startServer(t)
	planned := 0
	p.set(func(p *proxy) { p.changed = func(string, bson.Raw) { planned++ } })
	direct, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + p.backend + "/"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, direct.Disconnect(context.Background())) })
	both := []*mongo.Collection{client(t, p).Collection("planned"), direct.Database("direct").Collection("direct")}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range documents {
		d := bson.D{{Key: "_id", Value: fmt.Sprint("k", i)}, {Key: "n", Value: int32(random.IntN(4))},
			{Key: "text", Value: fmt.Sprint("t", random.IntN(4))}, {Key: "long", Value: int64(random.IntN(4))}}
		if random.IntN(2) == 0 {
			d = append(d, bson.E{Key: "at", Value: time.UnixMilli(int64(random.IntN(4)))})
		}
		for _, c := range both {
			_, err := c.InsertOne(t.Context(), d)
			require.NoError(t, err)
		}
	}
	for range rounds {
		filter := randomFilter(random, documents)
		var found, left [2][]bson.M
		var matched [2]int64
		for i, c := range both {
			cursor, err := c.Find(t.Context(), filter, options.Find().SetSort(bson.D{{Key: "n", Value: 1}}))
			require.NoError(t, err)
			require.NoError(t, cursor.All(t.Context(), &found[i]))
			update := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}},
				{Key: "$set", Value: bson.D{{Key: "text", Value: "t1"}}}}
			one := mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update)
			many := mongo.NewUpdateManyModel().SetFilter(filter).SetUpdate(update)
			result, err := c.BulkWrite(t.Context(), []mongo.WriteModel{one, many, one})
			require.NoError(t, err)
			matched[i] = result.MatchedCount
			cursor, err = c.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
			require.NoError(t, err)
			require.NoError(t, cursor.All(t.Context(), &left[i]))
		}
		require.ElementsMatch(t, found[0], found[1], "%v", filter)
		require.Equal(t, matched[0], matched[1], "%v", filter)
		require.Equal(t, left[0], left[1], "%v", filter)
	}
	require.Positive(t, planned)
}

// randomFilter names one key, or some in the order of the documents.
func randomFilter(random *rand.Rand, documents int) bson.D {
	from := random.IntN(documents)
	var key any = fmt.Sprint("k", from)
	if random.IntN(2) == 0 {
		keys := bson.A{}
		for i := from; i < documents && len(keys) < 5; i += 1 + random.IntN(3) {
			keys = append(keys, fmt.Sprint("k", i))
		}
		key = bson.D{{Key: "$in", Value: keys}}
	}
	filter := bson.D{{Key: "_id", Value: key}}
	for range random.IntN(3) {
		name := []string{"n", "text", "long", "at", "none"}[random.IntN(5)]
		value := map[string]any{
			"n": int32(random.IntN(4)), "text": fmt.Sprint("t", random.IntN(4)), "long": int32(random.IntN(4)),
			"at": time.UnixMilli(int64(random.IntN(4))), "none": int32(0),
		}[name]
		switch operator := append(operators, "")[random.IntN(len(operators)+1)]; operator {
		case "":
			filter = append(filter, bson.E{Key: name, Value: value})
		case "$exists":
			filter = append(filter, bson.E{Key: name, Value: bson.D{{Key: operator, Value: random.IntN(2) == 0}}})
		case "$in":
			filter = append(filter, bson.E{Key: name, Value: bson.D{{Key: operator, Value: bson.A{value}}}})
		default:
			filter = append(filter, bson.E{Key: name, Value: bson.D{{Key: operator, Value: value}}})
		}
	}
	return filter
}
