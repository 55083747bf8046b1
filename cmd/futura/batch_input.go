package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/futura-run/futura/batch"
)

// Formats of a file for a batch.
const (
	formatJSON   = "json"
	formatCSV    = "csv"
	formatNDJSON = "ndjson"
)

// maxBatchFile is the most bytes of a file for a batch.
const maxBatchFile = 64 << 20

// maxArgumentLine is the longest line of NDJSON.
const maxArgumentLine = 8 * batch.MaxArguments

// readFile returns a file, or standard input for "-".
func (a *app) readFile(name string) ([]byte, error) {
	var from io.Reader = a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer func() { _ = f.Close() }() // it was read
		from = f
	}
	content, err := io.ReadAll(io.LimitReader(from, maxBatchFile+1))
	if err == nil && len(content) > maxBatchFile {
		err = usageError{fmt.Errorf("%s has more than %d bytes: use several batches", name, maxBatchFile)}
	}
	return content, err
}

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
			return nil, usageError{fmt.Errorf("line %d is neither a list of texts nor a text: %w", n, err)}
		}
		lists = append(lists, list)
	}
	if err := lines.Err(); err != nil {
		return nil, usageError{fmt.Errorf("a line is longer than %d bytes: %w", maxArgumentLine, err)}
	}
	return lists, nil
}

// batchFlags describe a batch.
type batchFlags struct {
	head             headFlags
	file, format     string
	function, method string
	attempts         uint64
	key              string
	environment      []string
	stdin            string
	skipHeader       bool
	wait             bool
	config           batch.Config
}

// body is the request for a batch.
func (f *batchFlags) body(a *app, args []string) ([]byte, error) {
	lists := make([][]string, 0, len(args))
	for _, arg := range args {
		lists = append(lists, []string{arg})
	}
	if f.file != "" {
		content, err := a.readFile(f.file)
		if err != nil {
			return nil, err
		}
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
		return nil, usageError{errors.New("which function? Name it with --function, or send a whole request: --file X.json")}
	}
	request := batch.Request{
		Template:  batch.Template{FunctionID: f.function, Method: f.method, Config: f.config},
		Arguments: lists, MaxAttempts: f.attempts,
	}
	for _, variable := range f.environment {
		name, value, ok := strings.Cut(variable, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--env %.40q: use NAME=VALUE", variable)}
		}
		config := &request.Template.Config
		config.Environment = append(config.Environment, batch.EnvVar{Name: name, Value: value})
	}
	if f.stdin != "" {
		content, err := a.readFile(f.stdin)
		if err != nil {
			return nil, err
		}
		request.Template.Config.Stdin = string(content)
	}
	if err := request.Validate(); err != nil {
		return nil, usageError{err}
	}
	return json.Marshal(&request)
}

// checkWhole refuses flags beside a file that is the whole request.
func (f *batchFlags) checkWhole(args []string) error {
	if len(args) > 0 || f.function != "" || f.method != "" {
		return usageError{fmt.Errorf("%s is a whole request: leave out --function, --method and arguments", f.file)}
	}
	return nil
}
