# Writes far more than anybody keeps, on both streams at once.
head -c 20000000 /dev/zero | tr '\0' 'x' &
i=0
while [ $i -lt 3000 ]; do
	echo "line $i of $TOKEN"
	i=$((i + 1))
done >&2
head -c 3000000 /dev/zero | tr '\0' 'y' >&2
wait
echo >&2
echo "the end of it" >&2
exit 4
