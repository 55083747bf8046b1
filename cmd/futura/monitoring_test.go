package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/stretchr/testify/require"
)

// Files of the page for operators, from this directory.
const (
	monitoringPage = "../../docs/operating/monitoring.md"
	alertsFile     = "../../docs/operating/monitoring/alerts.yaml"
	dashboardFile  = "../../docs/operating/monitoring/grafana.json"
	alertTests     = "testdata/alerts_test.yaml"
)

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// installed returns the path of a program.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// alertRule is an alert of the file.
type alertRule struct {
	name, expression string
	annotations      map[string]any
}

func readAlerts(t *testing.T) (all []alertRule) {
	t.Helper()
	file, err := yaml.Parser().Unmarshal([]byte(readPage(t, alertsFile)))
	require.NoError(t, err)
	for _, group := range file["groups"].([]any) {
		for _, one := range group.(map[string]any)["rules"].([]any) {
			rule := one.(map[string]any)
			all = append(all, alertRule{rule["alert"].(string), rule["expr"].(string), rule["annotations"].(map[string]any)})
			require.Contains(t, []any{"critical", "warning", "info"}, rule["labels"].(map[string]any)["severity"])
		}
	}
	require.NotEmpty(t, all)
	return all
}

// TestEachAlertHasItsSection has each alert say what it means and what to do, and link to a section
// of the page, and each section be that of an alert.
func TestEachAlertHasItsSection(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{}
	headings := regexp.MustCompile(`(?m)^### (Futura\w+)$`)
	for _, heading := range headings.FindAllStringSubmatch(readPage(t, monitoringPage), -1) {
		sections[heading[1]] = true
	}
	for _, a := range readAlerts(t) {
		for _, name := range []string{"summary", "description", "action"} {
			require.NotEmpty(t, a.annotations[name], "%s of %s", name, a.name)
		}
		require.True(t, sections[a.name], "%s has no section", a.name)
		section := "https://github.com/futura-run/futura/blob/main/docs/operating/monitoring.md#" + strings.ToLower(a.name)
		require.Equal(t, section, a.annotations["runbook_url"])
		delete(sections, a.name)
	}
	require.Empty(t, sections, "sections without an alert")
}

// TestEachFaultHasAnAlert has the page name an alert for each row of the table of faults.
func TestEachFaultHasAnAlert(t *testing.T) {
	t.Parallel()
	alerts := map[string]bool{}
	for _, a := range readAlerts(t) {
		alerts[a.name] = true
	}
	_, rest, found := strings.Cut(readPage(t, "../../docs/operating/faults.md"), "| --- | --- | --- | --- |\n")
	require.True(t, found)
	table, _, _ := strings.Cut(rest, "\n\n")
	rows, page := strings.Split(table, "\n"), readPage(t, monitoringPage)
	require.Greater(t, len(rows), 5)
	for _, row := range rows {
		fault := strings.TrimSpace(strings.Split(row, "|")[1])
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(fault) + ` \|(.*)$`).FindString(page)
		named := regexp.MustCompile(`\bFutura[A-Z]\w+`).FindAllString(line, -1)
		require.NotEmpty(t, named, "the page has no alert for: %s", fault)
		for _, name := range named {
			require.True(t, alerts[name], "%s, for: %s", name, fault)
		}
	}
}

// TestEachAlertFires has promtool fire each alert from made-up series, with no other one.
func TestEachAlertFires(t *testing.T) {
	t.Parallel()
	promtool := installed(t, "promtool")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertTests}} {
		output, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	tests := readPage(t, alertTests)
	for _, a := range readAlerts(t) {
		require.Contains(t, tests, fmt.Sprintf(`{alertname="%s"}`, a.name), "no test fires it")
	}
}
