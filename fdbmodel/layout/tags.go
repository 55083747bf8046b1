package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the tags of a future.
const (
	// maxTags is how many tags a future has at most, and maxTag their length in bytes.
	maxTags = 8
	maxTag  = 64
)

// CheckTag returns ErrBadName unless a tag has 1 to maxTag of the characters A to Z,
// a to z, 0 to 9, and . _ : / @ = + -.
func CheckTag(tag string) error {
	bad := strings.IndexFunc(tag, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._:/@=+-", r))
	})
	if tag == "" || len(tag) > maxTag || bad >= 0 {
		return fmt.Errorf("%w: tag %.80q: use 1 to %d of the characters A-Z a-z 0-9 . _ : / @ = + -", ErrBadName, tag, maxTag)
	}
	return nil
}

// SortTags returns tags in their order, each once. It returns ErrBadName for an invalid
// one, and ErrBadSpec for more than maxTags.
func SortTags(tags []string) ([]string, error) {
	for _, tag := range tags {
		if err := CheckTag(tag); err != nil {
			return nil, err
		}
	}
	if len(tags) == 0 {
		return nil, nil
	}
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	if len(tags) > maxTags {
		return nil, fmt.Errorf("%w: %d tags: at most %d", ErrBadSpec, len(tags), maxTags)
	}
	return tags, nil
}

// checkTags returns an error for tags that SortTags has not returned.
func checkTags(tags []string) error {
	sorted, err := SortTags(tags)
	if err == nil && !slices.Equal(sorted, tags) {
		err = fmt.Errorf("%w: tags %q are not in their order, each once", ErrBadSpec, tags)
	}
	return err
}
