# Task: which region made the most money per month? Leave the whole table in summary.csv.
import pandas as pd

orders = pd.read_csv("orders.csv", parse_dates=["date"])
orders["units"] = orders["units"].fillna(0)
orders["revenue"] = orders["units"] * orders["price"]
table = orders.pivot_table(index=orders["date"].dt.strftime("%Y-%m"), columns="region", values="revenue", aggfunc="sum",
                           fill_value=0.0)
table.to_csv("summary.csv")
for month, row in table.iterrows():
    print(f"{month}: {row.idxmax()} ({row.max():.2f})")
print("total", round(orders["revenue"].sum(), 2))
