package inspect

// Internals that the tests of this package need.
const (
	FormatRaw  = formatRaw
	ViewedData = viewedData
)

// ReadPage reads some keys of a range.
var ReadPage = readPage
