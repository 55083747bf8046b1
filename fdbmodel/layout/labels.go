package layout

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of labels, of which a future may require some and a worker has some.
const (
	maxLabels       = 16
	maxWorkerLabels = 64
)

// Labels that a worker has without being given them, if they are valid: its name
// and its address.
const (
	labelWorker  = "worker"
	labelAddress = "address"
)

// LabelPeer is the id by which others know the worker, such as that of a libp2p
// peer: answers in b7s's shape name it in the place of the worker's own. It is given
// where a worker is registered for a peer.
const LabelPeer = "peer-id"

// IsOwnLabel reports whether a label tells one worker from others of its kind: its name, its address or its
// peer's id.
func IsOwnLabel(name string) bool {
	return name == labelWorker || name == labelAddress || name == LabelPeer
}

// LabelNear is what a future requires that must be near an object, with the id of
// that, while no worker that has the object could run it. No worker has it.
const LabelNear = "near"

// AnyLabel stands in WorkerInfo.Labels for every label.
const AnyLabel = "*"

var (
	labelName  = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,64}$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9._/:@+\[\]-]{0,128}$`)
)

// CheckLabel returns ErrBadName unless name and value may be those of a label.
func CheckLabel(name, value string) error {
	if !labelName.MatchString(name) {
		return fmt.Errorf("%w: label %.80q: use 1 to 64 of A-Z, a-z, 0-9 and . _ - /", ErrBadName, name)
	}
	if !labelValue.MatchString(value) {
		return fmt.Errorf("%w: value %.80q of the label %s: use up to 128 of A-Z, a-z, 0-9 and . _ - / : @ + [ ]",
			ErrBadName, value, name)
	}
	return nil
}

func checkLabels(labels map[string]string, most int) error {
	if len(labels) > most {
		return fmt.Errorf("%w: %d labels: at most %d", ErrBadName, len(labels), most)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if err := CheckLabel(name, labels[name]); err != nil {
			return err
		}
	}
	return nil
}

// LabelText returns labels as NAME=VALUE, sorted and separated by commas.
func LabelText(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	texts := make([]string, 0, len(labels))
	for name, value := range labels {
		texts = append(texts, name+"="+value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// ParseLabels reads labels given as NAME=VALUE. It returns ErrBadName for one that
// is invalid or given twice.
func ParseLabels(list []string) (map[string]string, error) {
	var labels map[string]string
	for _, text := range list {
		name, value, found := strings.Cut(text, "=")
		if _, twice := labels[name]; twice || !found {
			return nil, fmt.Errorf("%w: label %.80q: use NAME=VALUE, and each name once", ErrBadName, text)
		}
		if err := CheckLabel(name, value); err != nil {
			return nil, err
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, nil
}

// LabelSet are the labels of a worker, each as NAME=VALUE.
type LabelSet map[string]struct{}

// LabelSet returns the labels of the worker.
func (w *WorkerInfo) LabelSet() LabelSet {
	set := make(LabelSet, len(w.Labels))
	for name, value := range w.Labels {
		set[name+"="+value] = struct{}{}
	}
	return set
}

// Have reports whether the worker has all labels of a LabelText.
func (s LabelSet) Have(text string) bool {
	if text == "" {
		return true
	}
	if _, any := s[AnyLabel+"="]; any {
		return true
	}
	for more := true; more; {
		var label string
		label, text, more = strings.Cut(text, ",")
		if _, found := s[label]; !found {
			return false
		}
	}
	return true
}

// CheckLabels returns ErrBadName for invalid labels, and adds those that every
// worker has. AnyLabel is valid.
func (w *WorkerInfo) CheckLabels() error {
	if _, any := w.Labels[AnyLabel]; any && len(w.Labels) == 1 {
		return nil
	}
	if err := checkLabels(w.Labels, maxWorkerLabels); err != nil {
		return err
	}
	if _, given := w.Labels[LabelNear]; given {
		return fmt.Errorf("%w: label %s: no worker may have it", ErrBadName, LabelNear)
	}
	labels := maps.Clone(w.Labels)
	for name, value := range map[string]string{labelWorker: w.Name, labelAddress: w.Address} {
		if _, given := labels[name]; given || value == "" || CheckLabel(name, value) != nil {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	w.Labels = labels
	return nil
}
