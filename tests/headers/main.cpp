// The headers are compiled one by one beside this file; that they link into one program is the test.
int main() {}
