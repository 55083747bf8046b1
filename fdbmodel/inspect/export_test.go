package inspect

// What the tests of this package need of its insides.
const (
	FormatRaw  = formatRaw
	ViewedData = viewedData
)

// ReadPage reads some keys of a range.
var ReadPage = readPage
