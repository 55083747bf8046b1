package page

import (
	"bytes"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/futura-run/futura/internal/bench"
)

// curve is a plot and a table of the points of a scenario.
type curve struct {
	scenario, file, title, x, text string
	latency                        bool // it shows p50 and p99, and not the rate
}

func curves() []curve {
	return []curve{
		{"load", "performance-load.svg", "Latency over load", "arrivals/s",
			"Futures arrive at random times, whether or not earlier ones have ended, at 10 to 90 % of the rate that\n" +
				"64 clients reach which each have one future under way. From submit to result.", true},
		{"workers", "performance-workers.svg", "Rate over workers", "workers",
			"Workers of one slot run functions that wait for 2 ms, as for another service. The rate follows the number of\n" +
				"workers until the processor or the store is busy.", false},
		{"pending", "performance-pending.svg", "Rate over pending futures", "pending",
			"Two workers run no-ops while that many futures are kept pending, on disk.", false},
		{"history", "performance-history.svg", "Rate over futures that have ended", "ended",
			"Two workers run no-ops of 500 bytes, and the store keeps what has ended.", false},
	}
}

// color of a kind of store: told apart by people who see colors differently, on white.
func colorOf(kind string) color.Color {
	return map[string]color.Color{
		InProcess: color.RGBA{0x00, 0x5f, 0x9e, 0xff}, Remote: color.RGBA{0xc8, 0x50, 0x00, 0xff},
		FoundationDB: color.RGBA{0x00, 0x7d, 0x5a, 0xff},
	}[kind]
}

// plot draws a curve as SVG.
func (d *Document) plot(c curve) ([]byte, error) {
	p, err := d.lines(c)
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(16*vg.Centimeter, 9*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return bytes.ReplaceAll(b.Bytes(), []byte("Liberation Sans;"), []byte("Liberation Sans,Arial,sans-serif;")), err
}

// lines are the plot of a curve. The background is white, so that it can be read on a dark page too.
func (d *Document) lines(c curve) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, "futures per second"
	if c.latency {
		p.Title.Text, p.Y.Label.Text = c.title+": p50, and p99 dashed", "milliseconds"
	}
	logarithmic(&p.X)
	logarithmic(&p.Y)
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		f.Variant = "Sans"
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := false
	for _, kind := range Kinds() {
		r := d.find(c.scenario, kind)
		if r == nil || len(r.Points) == 0 {
			continue
		}
		drawn = true
		if !c.latency {
			if err := add(p, r, name(kind), nil, func(q bench.Point) float64 { return q.FuturesPerSecond }); err != nil {
				return nil, err
			}
			continue
		}
		dashes := []vg.Length{vg.Points(5), vg.Points(3)}
		if err := add(p, r, name(kind), nil, func(q bench.Point) float64 { return q.P50 }); err != nil {
			return nil, err
		}
		if err := add(p, r, "", dashes, func(q bench.Point) float64 { return q.P99 }); err != nil {
			return nil, err
		}
	}
	if !drawn {
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 10, 1, 10
	}
	p.X.Min, p.X.Max = p.X.Min/1.1, p.X.Max*1.1
	p.Y.Min, p.Y.Max = p.Y.Min/1.3, p.Y.Max*math.Pow(p.Y.Max/p.Y.Min, 0.4) // the legend is above the lines
	return p, nil
}

func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, ticks{}
}

// ticks are at 1, 2 and 5 of each power of ten, and at 1 alone where that is many.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(low, high float64) (all []plot.Tick) {
	decades := math.Log10(high / low)
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			v := digit * decade
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || decades < 3 {
				t.Label = figure(v)
			}
			all = append(all, t)
		}
	}
	return all
}

// add draws a line with a mark at each point.
func add(p *plot.Plot, r *bench.Report, label string, dashes []vg.Length, y func(bench.Point) float64) error {
	points := make(plotter.XYs, len(r.Points))
	for i, q := range r.Points {
		points[i] = plotter.XY{X: math.Max(q.At, 1e-3), Y: math.Max(y(q), 1e-3)}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = colorOf(r.Store), vg.Points(1.5), dashes
	marks.Color, marks.Radius, marks.Shape = line.Color, vg.Points(2), draw.CircleGlyph{}
	p.Add(line, marks)
	if label != "" {
		p.Legend.Add(label, line)
	}
	return nil
}
