// Package mongostore keeps batches in a MongoDB server, or one that speaks its
// protocol.
//
// Three collections have the names and the documents of b7s, with more fields:
// b7s-batches, b7s-batch-chunks and b7s-batch-work-items. A fourth,
// b7s-batch-outputs, has the parts of outputs that are too large for a document.
//
// Correctness rests on insertion under a unique key and on changes of one
// document that compare and set. No transactions are used, so a single server
// will do. Changes of many documents are made in parts, each of which changes a
// document only if it is still in the state that was seen; Settle, or the same
// call again, repairs what was interrupted.
package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/futura-run/futura/batch"
)

// Errors of Open.
var (
	// ErrBadURI is returned by Open for a URI that names no server.
	ErrBadURI = errors.New("not the URI of a MongoDB server, such as mongodb://localhost:27017/")
	// ErrUnreachable is returned by Open when no server answers in time.
	ErrUnreachable = errors.New("no MongoDB server answers")
	// ErrCredentials is returned by Open when the server refuses the user, the
	// password, or access to the database.
	ErrCredentials = errors.New("the MongoDB server refuses the credentials")
	// ErrForeignSchema is returned by Open when a collection with one of the
	// store's names was made by something else.
	ErrForeignSchema = errors.New("a collection with other options exists")
)

// DefaultDatabase is the database's name unless it is set.
const DefaultDatabase = "b7s-db"

// openTimeout bounds Open until the server has answered, so that it is clear
// within five seconds whether it does; prepareTimeout bounds the rest of Open,
// except for indexing existing documents, which indexTimeout bounds. callTimeout
// bounds each call whose context has no deadline.
const (
	openTimeout    = 4500 * time.Millisecond
	prepareTimeout = 30 * time.Second
	indexTimeout   = 24 * time.Hour
	callTimeout    = 2 * time.Minute
)

// Options of a store.
type Options struct {
	// URI is the server's, such as mongodb://localhost:27017/. It is required.
	URI string
	// Database is the name of the database. Defaults to DefaultDatabase.
	Database string
	// Logger receives warnings about what the server can't do. Defaults to none.
	Logger *slog.Logger
}

// Store is a batch.Recorder in a MongoDB server.
type Store struct {
	client   *mongo.Client
	log      *slog.Logger
	where    string
	database *mongo.Database
	batches  *mongo.Collection
	chunks   *mongo.Collection
	items    *mongo.Collection
	outputs  *mongo.Collection
	open     witnesses
}

var _ batch.Recorder = (*Store)(nil)

// Open connects to a server and creates the missing collections. It returns
// ErrBadURI, ErrUnreachable, ErrCredentials or ErrForeignSchema.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.Database = cmp.Or(o.Database, DefaultDatabase)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	answering, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	connection, err := parseURI(answering, o.URI)
	if err != nil {
		return nil, err
	}
	// Reads must see the latest writes.
	connection.SetReadPreference(readpref.Primary())
	if connection.WriteConcern == nil {
		journal := true
		connection.SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal})
	}
	client, err := mongo.Connect(connection)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadURI, withoutSecrets(o.URI), hideSecrets(err, o.URI))
	}
	database := client.Database(o.Database)
	s := &Store{
		client: client, log: o.Logger, where: withoutSecrets(o.URI) + " database " + o.Database,
		database: database, batches: database.Collection(batchesName), chunks: database.Collection(chunksName),
		items: database.Collection(itemsName), outputs: database.Collection(outputsName),
	}
	if err := s.prepare(ctx, answering); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// parseURI reads a URI. The driver looks up servers that a URI names by DNS, and
// takes no context for that: the look-up may go on after ctx.
func parseURI(ctx context.Context, uri string) (*options.ClientOptions, error) {
	parsed := make(chan *options.ClientOptions, 1)
	go func() {
		connection := options.Client().SetAppName("futura").SetServerSelectionTimeout(openTimeout).SetTimeout(callTimeout)
		parsed <- connection.ApplyURI(uri)
	}()
	select {
	case connection := <-parsed:
		return connection, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w at %s: its name was not found within %v: %w", ErrUnreachable, withoutSecrets(uri),
			openTimeout, ctx.Err())
	}
}

// prepare checks the connection while answering lasts, and makes the collections
// and their indexes.
func (s *Store) prepare(ctx, answering context.Context) error {
	preparing, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	err := s.client.Ping(answering, nil)
	if err == nil {
		err = s.createCollections(preparing)
	}
	for _, name := range Collections() {
		if err == nil {
			err = s.createIndexes(ctx, preparing, name)
		}
	}
	if err != nil {
		return s.refused(err)
	}
	return nil
}

// Codes of the server.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
	codeNamespaceExists      = 48
	codeIndexOptionsConflict = 85
	codeIndexKeyConflict     = 86
	codeDuplicateKey         = 11000
	codeCommandNotFound      = 59
	codeNotImplemented       = 238
)

func hasCode(err error, codes ...int) bool {
	var refused mongo.ServerError
	return errors.As(err, &refused) && slices.ContainsFunc(codes, refused.HasErrorCode)
}

// refused explains an error of the first calls.
func (s *Store) refused(err error) error {
	switch {
	case errors.Is(err, ErrForeignSchema):
		return err
	case hasCode(err, codeUnauthorized, codeAuthenticationFailed) || strings.Contains(err.Error(), "auth error"):
		return fmt.Errorf("%w: %s: check the user, the password and authSource in the URI: %w", ErrCredentials, s.where, err)
	case isUnreachable(err) || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w at %s: check that it runs and that the address is right: %w", ErrUnreachable, s.where, err)
	}
	return fmt.Errorf("%s: %w", s.where, err)
}

// isUnreachable reports whether an error means that no server answered.
func isUnreachable(err error) bool {
	return mongo.IsTimeout(err) || mongo.IsNetworkError(err) || strings.Contains(err.Error(), "server selection error")
}

// withoutSecrets is a URI without its user, password and options.
func withoutSecrets(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil {
		_, authority, _ := strings.Cut(uri, "://")
		authority, _, _ = strings.Cut(authority, "/")
		at := strings.LastIndexByte(authority, '@')
		if at < 0 {
			return "mongodb://…"
		}
		return "mongodb://" + authority[at+1:]
	}
	return parsed.Scheme + "://" + parsed.Host
}

// hideSecrets is an error without its URI.
func hideSecrets(err error, uri string) error {
	return errors.New(strings.ReplaceAll(err.Error(), uri, withoutSecrets(uri)))
}

// Describe implements batch.Store.
func (s *Store) Describe() (name string, durable bool) { return "mongo at " + s.where, true }

// Close implements batch.Store.
func (s *Store) Close(ctx context.Context) error { return s.client.Disconnect(ctx) }

// Watch implements batch.Store. A server without a replica set can't report
// changes, so the store never asks for them.
func (s *Store) Watch(context.Context, string) (<-chan struct{}, func(), bool, error) {
	return nil, func() {}, false, nil
}

// now is the time to the millisecond, as the server keeps it.
func now() time.Time { return milliseconds(time.Now()) }

func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// failed says what a call to the server was for.
func failed(ctx context.Context, err error, format string, a ...any) error {
	what := fmt.Sprintf(format, a...)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("mongo: %s: %w: %w", what, ended, err)
	}
	if isUnreachable(err) {
		return fmt.Errorf("mongo: %s: %w: %w", what, batch.ErrUnavailable, err)
	}
	return fmt.Errorf("mongo: %s: %w", what, err)
}
