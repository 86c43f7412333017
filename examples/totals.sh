# Units sold per product, largest first, from the same table.
tail -n +2 orders.csv | awk -F, '{ units[$3] += $4 } END { for (name in units) print units[name], name }' | sort -rn
