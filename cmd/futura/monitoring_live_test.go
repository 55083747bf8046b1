package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
	"github.com/futura-run/futura/workers"
)

// watched is a cluster whose processes a Prometheus scrapes: dev with peers, a worker, a worker on
// the peers' network, and a program with functions and stages.
type watched struct {
	*testing.T
	store, tokenFile string
	dev              endpoint
	node             *futura.Node
	orders           *jobqueue.Log[string]
	targets          []string
	onPeers          string // the target that is the worker on the peers' network
	api              string
}

func watchedCluster(t *testing.T) *watched {
	dir := filepath.Join(t.TempDir(), "store")
	w := &watched{T: t, store: "embedded:" + dir, tokenFile: filepath.Join(dir, ownTokenFile)}
	// No worker dies for the machine being busy.
	before, err := futura.Open(t.Context(), w.store, futura.ClusterConfig(futures.Config{DeadAfter: time.Minute}))
	require.NoError(t, err)
	require.NoError(t, before.Close())
	w.dev, _, _ = startDev(t, "--store", w.store, "--slots", "2", "--queue", "modules", "--any-peer",
		"--peers", "/ip4/127.0.0.1/tcp/0")
	w.targets = []string{strings.TrimPrefix(w.dev.URL, "http://")}
	w.startWorker("--store", w.store, "--queue", "modules")
	w.startWorker("--head", w.dev.Peers[0], "--state", filepath.Join(dir, "peer"), "--slots", "2")
	w.onPeers = w.targets[2]
	w.startProgram()
	for alias, module := range map[string][]byte{"cat": copying(), "trap": trapping()} {
		status, answer := ask(t, &w.dev, "POST", "/api/v1/functions?alias="+alias, w.dev.Token, string(module))
		require.Less(t, status, 300, answer)
	}
	status, answer := ask(t, &w.dev, "PUT", "/api/v1/limits", w.dev.Token, `{"pending":100000}`)
	require.Equal(t, http.StatusOK, status, answer)
	// No other worker serves its queue than the one on the peers' network.
	(&shell{t, w.store}).run(exitOK, strings.Repeat("x\n", 50), "batch", "submit", "--function", "cat", "--file", "-",
		"--url", w.dev.URL, "--token-file", w.tokenFile, "--wait")
	return w
}

// startWorker runs the command worker until the test ends.
func (w *watched) startWorker(args ...string) {
	ctx, stop := context.WithCancel(context.Background())
	in, out := io.Pipe()
	log, code := &stacktest.Buffer{}, make(chan int, 1)
	args = append([]string{"worker", "--metrics-listen", "127.0.0.1:0", "--token-file", w.tokenFile, "--json"}, args...)
	go func() {
		code <- run(ctx, args, strings.NewReader(""), out, log)
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	w.Cleanup(func() { stop(); require.Zero(w, <-code, "%s", log) })
	var said struct{ Metrics string }
	require.NoError(w, json.NewDecoder(in).Decode(&said), "%s", log)
	at, err := url.Parse(said.Metrics)
	require.NoError(w, err)
	require.Equal(w, "/metrics", at.Path)
	stacktest.Send(w.T, "GET", said.Metrics, "").Problem(http.StatusUnauthorized, "unauthorized", "token")
	w.targets = append(w.targets, at.Host)
}

// startProgram runs functions that succeed, fail and wait, and consumers of jobs: one that parks
// some, and one that has stopped.
func (w *watched) startProgram() {
	release := make(chan struct{})
	wait := func(context.Context, []byte) ([]byte, error) { <-release; return nil, nil }
	fail := func(context.Context, []byte) ([]byte, error) { return nil, errors.New("it fails") }
	var err error
	w.node, err = futura.Open(w.Context(), w.store, futura.Function("echo", echo), futura.Function("fail", fail),
		futura.Function("wait", wait), futura.WorkerOptions(workers.Options{Slots: 4, Queues: []string{"default", "mail"}}))
	require.NoError(w, err)
	w.Cleanup(func() { close(release); require.NoError(w, w.node.Close()) })
	cluster := w.node.Client.Cluster()
	w.orders, err = jobqueue.NewLog(cluster, "orders", jobqueue.LogOptions[string]{})
	require.NoError(w, err)
	w.Cleanup(w.orders.Close)
	registry := prometheus.NewRegistry()
	registry.MustRegister(workers.NewCollector(w.node.Worker))
	for _, name := range []string{"price", "gone"} {
		handle := func(_ context.Context, job jobqueue.Job[string], _ *jobqueue.Output) error {
			if job.Index == 2 {
				return jobqueue.Permanent(errors.New("it is bad"))
			}
			return nil
		}
		advanced := make(chan uint64, 1000)
		o := jobqueue.Options{OnFailure: jobqueue.Park, OnAdvance: func(n uint64) {
			select {
			case advanced <- n:
			default:
			}
		}}
		stage, err := jobqueue.NewStage(cluster, w.orders, name, handle, jobqueue.StageOptions{Options: o})
		require.NoError(w, err)
		require.NoError(w, stage.Start())
		_, err = w.orders.Append(w.Context(), "one", "two", "three")
		require.NoError(w, err)
		for n := uint64(0); n < 3; n = <-advanced {
			continue
		}
		if name == "gone" {
			require.NoError(w, stage.Stop(w.Context()))
			continue
		}
		registry.MustRegister(jobqueue.NewCollector(stage))
		w.Cleanup(func() { require.NoError(w, stage.Stop(context.Background())) })
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	w.Cleanup(server.Close)
	w.targets = append(w.targets, strings.TrimPrefix(server.URL, "http://"))
}

func echo(_ context.Context, args []byte) ([]byte, error) { return args, nil }

// work submits futures of each function, and awaits those that end.
func (w *watched) work() {
	var tasks []futures.Task
	for _, f := range []string{"go:echo", "go:fail", "wasm:cat", "wasm:trap"} {
		queue := map[bool]string{true: "modules", false: "mail"}[strings.HasPrefix(f, "wasm:")]
		tasks = append(tasks, futures.Task{Function: f, Queue: queue, MaxRetries: new(int)})
	}
	submitted, err := w.node.Client.SubmitMany(w.Context(), tasks)
	require.NoError(w, err)
	for _, f := range submitted {
		_, _ = f.Await(w.Context())
	}
	_, err = w.orders.Append(w.Context(), "more")
	require.NoError(w, err)
}

// startPrometheus scrapes the processes once a second until the test ends.
func (w *watched) startPrometheus() {
	program, dir := installed(w.T, "prometheus"), w.TempDir()
	rules, err := filepath.Abs(alertsFile)
	require.NoError(w, err)
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [%q]\nscrape_configs:\n- job_name: futura\n  authorization: {credentials_file: %q}\n"+
		"  static_configs: [{targets: [%s]}]\n", rules, w.tokenFile, strings.Join(w.targets, ", "))
	file := filepath.Join(dir, "prometheus.yaml")
	require.NoError(w, os.WriteFile(file, []byte(config), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w, err)
	address := free.Addr().String()
	require.NoError(w, free.Close())
	log := &stacktest.Buffer{}
	command := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	command.Stderr = log
	require.NoError(w, command.Start())
	w.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if w.Failed() {
			w.Log(log.String())
		}
	})
	w.api = "http://" + address + "/api/v1/"
}

// read asks Prometheus, and reports whether it answered.
func (w *watched) read(path string, to any) bool {
	request, err := http.NewRequestWithContext(w.Context(), "GET", w.api+path, http.NoBody)
	require.NoError(w, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(w, err)
	if response.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	require.Equal(w, http.StatusOK, response.StatusCode, "%s: %s", path, text)
	answer := struct{ Data any }{to}
	require.NoError(w, json.Unmarshal(text, &answer))
	return true
}

// rows is how many series an expression has now.
func (w *watched) rows(expression string) int {
	var data struct{ Result []any }
	w.read("query?query="+url.QueryEscape(expression), &data)
	return len(data.Result)
}

// dashboardExpressions are those of the dashboard, as Grafana would send them.
func dashboardExpressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal([]byte(readPage(t, dashboardFile)), &dashboard))
	variables := strings.NewReplacer("$job", "futura", "$cluster", "default", "$__rate_interval", "1m")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, variables.Replace(target.Expr))
		}
	}
	require.Greater(t, len(all), 50)
	return all
}

var metricName = regexp.MustCompile(`\b(futura|process)_[a-z0-9_]+\b`)

// TestEveryExpressionHasData has Prometheus evaluate what the dashboard shows, and the alerts: what
// fires is what is wrong with the cluster, and there is each metric that they and the documentation name.
func TestEveryExpressionHasData(t *testing.T) {
	t.Parallel()
	installed(t, "prometheus")
	w := watchedCluster(t)
	w.startPrometheus()
	for _, task := range []futures.Task{{Function: "go:wait"}, {Function: "go:none", Queue: "unserved"}} {
		_, err := w.node.Client.Submit(t.Context(), task)
		require.NoError(t, err)
	}
	fires := map[string]bool{"FuturaNothingRuns": true, "FuturaFunctionFails": true, "FuturaJobsNotHeld": true,
		"FuturaJobsStuck": true, "FuturaJobsParked": true}
	// These are about the machine of the test.
	ofMachine := []string{"FuturaDiskFull", "FuturaDiskFillsSoon", "FuturaDiskSlow", "FuturaFewDescriptors"}
	missing := append(dashboardExpressions(t), fmt.Sprintf("futura_worker_realized_total{instance=%q} > 0", w.onPeers))
	for _, a := range readAlerts(t) {
		if fires[a.name] {
			missing = append(missing, a.expression, fmt.Sprintf("ALERTS{alertname=%q}", a.name))
		}
	}
	deadline := time.Now().Add(45 * time.Second)
	for len(missing) > 0 {
		require.True(t, time.Now().Before(deadline), "without data: %q", missing)
		w.work()
		missing = slices.DeleteFunc(missing, func(e string) bool { return w.rows(e) > 0 })
	}
	for _, a := range readAlerts(t) {
		if fires[a.name] || slices.Contains(ofMachine, a.name) {
			continue
		}
		for w.rows(a.expression) > 0 {
			require.True(t, time.Now().Before(deadline), "%s: nothing is wrong", a.name)
		}
	}
	w.checkRules()
	w.checkNames()
}

// checkRules requires that Prometheus evaluates all rules, with texts that could be filled in.
func (w *watched) checkRules() {
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	w.read("rules", &rules)
	require.NotEmpty(w, rules.Groups)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			require.Equal(w, "ok", r.Health, "%s: %s", r.Name, r.LastError)
		}
	}
	var firing struct {
		Alerts []struct{ Annotations map[string]string }
	}
	w.read("alerts", &firing)
	require.NotEmpty(w, firing.Alerts)
	for _, a := range firing.Alerts {
		require.NotContains(w, fmt.Sprint(a.Annotations), "error")
	}
}

// checkNames requires that the metrics of the documentation are those that there are, and has all
// that alerts and the dashboard use.
func (w *watched) checkNames() {
	var scraped map[string]any
	w.read("metadata", &scraped)
	page := readPage(w.T, "../../docs/reference/http.md")
	_, section, found := strings.Cut(page, "\n## Metrics\n")
	require.True(w, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(futura_[a-z0-9_]+)").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
		require.Contains(w, scraped, row[1], "documented, and not there")
	}
	for name := range scraped {
		if strings.HasPrefix(name, "futura_") {
			require.Contains(w, documented, name, "not documented")
		}
	}
	used := readPage(w.T, alertsFile) + readPage(w.T, dashboardFile)
	for _, name := range metricName.FindAllString(used, -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		_, whole := scraped[name]
		_, histogram := scraped[base]
		require.True(w, whole || histogram, "%s is not there", name)
	}
}
