//go:build !unix

package remote

// maxDescriptors is how many files and connections the process may have open.
func maxDescriptors() int { return manyDescriptors }
