//go:build fdb

package fdbkv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// ErrBadClusterFile is returned when a file is not a cluster file.
var ErrBadClusterFile = errors.New("fdbkv: not a cluster file")

const clusterFileForm = "one line of the form DESCRIPTION:ID@HOST:PORT,HOST:PORT,... is expected, " +
	"with :tls after a port for TLS"

// maxClusterFile is more than any cluster file has, in bytes.
const maxClusterFile = 1 << 20

// checkClusterFile finds what FoundationDB's library would take for a cluster
// that does not answer.
func checkClusterFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("fdbkv: cluster file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxClusterFile))
	if err != nil {
		return fmt.Errorf("fdbkv: cluster file %s: %w", path, err)
	}
	if mistake := clusterFileMistake(string(content)); mistake != "" {
		return fmt.Errorf("%w: %s: %s; %s", ErrBadClusterFile, path, mistake, clusterFileForm)
	}
	return nil
}

// clusterFileMistake returns what is wrong with a cluster file, empty if nothing
// is.
func clusterFileMistake(content string) string {
	var lines []string
	scanner := bufio.NewScanner(strings.NewReader(content))
	scanner.Buffer(nil, maxClusterFile)
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		return fmt.Sprintf("it has %d lines besides comments", len(lines))
	}
	key, coordinators, found := strings.Cut(lines[0], "@")
	description, id, colon := strings.Cut(key, ":")
	if !found || !colon {
		return "there is no DESCRIPTION:ID@ in it"
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_]+$`).MatchString(description) {
		return fmt.Sprintf("the description %q has characters other than letters, digits and _", description)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9]+$`).MatchString(id) {
		return fmt.Sprintf("the id %q has characters other than letters and digits", id)
	}
	for _, coordinator := range strings.Split(coordinators, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimSpace(coordinator), ":tls"))
		number, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || notNumber != nil || number == 0 {
			return fmt.Sprintf("the coordinator %q is not HOST:PORT", coordinator)
		}
	}
	return ""
}
