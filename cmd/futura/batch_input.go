package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/futura-run/futura/batch"
)

// Formats of a file for a batch.
const (
	formatJSON   = "json"
	formatCSV    = "csv"
	formatNDJSON = "ndjson"
)

const (
	// maxBatchFile is the most bytes of a file for a batch.
	maxBatchFile = 64 << 20
	tooManyItems = ": use several batches"
)

// byteOrderMark is how some programs begin a text in UTF-8; it is no part of that.
var byteOrderMark = []byte("\ufeff")

// maxArgumentLine is the longest line of NDJSON.
const maxArgumentLine = 8 * batch.MaxArguments

// formatOf is the format of a file: as it was named, by the file's name, or by
// how it begins.
func formatOf(named, file string, content []byte) (string, error) {
	switch named {
	case formatJSON, formatCSV, formatNDJSON:
		return named, nil
	case "":
	default:
		return "", usageError{fmt.Errorf("--format %.20q: use json, csv or ndjson", named)}
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return formatJSON, nil
	case ".csv":
		return formatCSV, nil
	case ".ndjson", ".jsonl":
		return formatNDJSON, nil
	}
	switch start := bytes.TrimLeft(content, " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")):
		return formatJSON, nil
	case bytes.HasPrefix(start, []byte("[")), bytes.HasPrefix(start, []byte(`"`)):
		return formatNDJSON, nil
	default:
		return formatCSV, nil
	}
}

// readArguments reads lists of arguments. Each record of CSV is one; so is each
// line of NDJSON, a list of texts or one text.
func readArguments(format string, content []byte) ([][]string, error) {
	if err := checkText(content); err != nil {
		return nil, err
	}
	if format == formatCSV {
		r := csv.NewReader(bytes.NewReader(content))
		r.FieldsPerRecord = -1
		lists, err := r.ReadAll()
		if err != nil {
			return nil, usageError{err}
		}
		return lists, nil
	}
	var lists [][]string
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxArgumentLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		list, one := []string{}, ""
		if json.Unmarshal(line, &one) == nil && line[0] == '"' {
			list = []string{one}
		} else if err := json.Unmarshal(line, &list); err != nil {
			return nil, usageError{fmt.Errorf("line %d is neither a list of strings nor a string: %w", n, err)}
		}
		lists = append(lists, list)
	}
	if err := lines.Err(); err != nil {
		return nil, usageError{fmt.Errorf("a line is longer than %d bytes: %w", maxArgumentLine, err)}
	}
	return lists, nil
}

// checkText refuses what JSON can't carry to a head as it is.
func checkText(content []byte) error {
	if !utf8.Valid(content) {
		return usageError{errors.New("it is not UTF-8, which arguments and the standard input of a batch are: convert it, " +
			"such as with iconv -f latin1 -t utf8, or write it in base64")}
	}
	return nil
}

// batchFlags describe a batch.
type batchFlags struct {
	head             headFlags
	file, format     string
	function, method string
	attempts         uint64
	key, topic       string
	environment      []string
	stdin            string
	skipHeader       bool
	wait             bool
	config           batch.Config
	given            func(flag string) bool // reports whether the command line has a flag; nil for no flags
}

// has reports whether the command line has a flag.
func (f *batchFlags) has(flag string) bool { return f.given != nil && f.given(flag) }

// body is the request for a batch.
func (f *batchFlags) body(a *app, args []string) ([]byte, error) {
	lists := make([][]string, 0, len(args))
	for _, arg := range args {
		if err := checkText([]byte(arg)); err != nil {
			return nil, fmt.Errorf("argument %q: %w", arg, err)
		}
		lists = append(lists, []string{arg})
	}
	if f.file == "" && (f.has("format") || f.has("skip-header")) {
		return nil, usageError{errors.New("--format and --skip-header are about a --file")}
	}
	if f.file != "" {
		content, err := a.readInput(f.file, maxBatchFile, tooManyItems)
		if err != nil {
			return nil, err
		}
		content = bytes.TrimPrefix(content, byteOrderMark)
		format, err := formatOf(f.format, f.file, content)
		if err != nil {
			return nil, err
		}
		if format == formatJSON {
			return content, f.checkWhole(args)
		}
		read, err := readArguments(format, content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.file, err)
		}
		if f.skipHeader && len(read) > 0 {
			read = read[1:]
		}
		lists = append(lists, read...)
	}
	if f.function == "" {
		return nil, usageError{errors.New("no function: name it with --function, or send a whole request with --file X.json")}
	}
	request := batch.Request{
		Template:  batch.Template{FunctionID: f.function, Method: f.method, Config: f.config},
		Arguments: lists, MaxAttempts: f.attempts,
	}
	var err error
	if request.Template.Config.Environment, err = parseEnvironment(f.environment); err != nil {
		return nil, err
	}
	if f.stdin != "" {
		content, err := a.readInput(f.stdin, maxBatchFile, tooManyItems)
		if err != nil {
			return nil, err
		}
		if err := checkText(content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.stdin, err)
		}
		request.Template.Config.Stdin = string(content)
	}
	if err := request.Validate(); err != nil {
		return nil, usageError{err}
	}
	return json.Marshal(&struct {
		*batch.Request
		Topic string `json:"topic,omitempty"`
	}{&request, f.topic})
}

// checkWhole refuses flags beside a file that is the whole request.
func (f *batchFlags) checkWhole(args []string) error {
	if len(args) > 0 || f.function != "" || f.method != "" {
		return usageError{fmt.Errorf("%s is a whole request: leave out --function, --method and arguments", f.file)}
	}
	for _, flag := range []string{"topic", "nodes", "max-attempts", "timeout", "concurrency", "rate-per-host", "env",
		"stdin-file", "skip-header"} {
		if f.has(flag) {
			return usageError{fmt.Errorf("%s is a whole request: leave out --%s, and say it there", f.file, flag)}
		}
	}
	return nil
}
