package layout

// Shorten returns text of at most n bytes, with a mark at its end if something was left
// out. It splits no character.
func Shorten(text string, n int) string {
	const mark = " … (cut)"
	if len(text) <= n {
		return text
	}
	n -= len(mark)
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n] + mark
}
